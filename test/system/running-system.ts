import { type ChildProcess, spawn } from 'node:child_process';
import { expect } from 'vitest';

/** A machine that is busy starts NATS, Redis and admin-api slowly. */
const START_MS = 110_000;

/** A process of `npm start` with its output. */
export class RunningSystem {
  output = '';

  private constructor(private readonly child: ChildProcess) {
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text) => (this.output += String(text)));
  }

  /** Starts the compiled program and waits for the address of the console. */
  static async start(...options: string[]): Promise<RunningSystem> {
    const child = spawn(process.execPath, ['dist/lab/demo/src/main.js', ...options], {
      // NATS and Redis of its own.
      env: { ...process.env, NATS_URL: '', REDIS_URL: '' },
    });
    const system = new RunningSystem(child);
    await expect.poll(() => system.output, { timeout: START_MS }).toMatch(/^Token: /m);
    return system;
  }

  /** The address of the console, signed in. */
  get url(): string {
    return /^Console: +(\S+)/m.exec(this.output)![1]!;
  }

  async stop(): Promise<void> {
    const exited = new Promise((settle) => this.child.once('exit', settle));
    this.child.kill('SIGINT');
    await exited;
  }
}
