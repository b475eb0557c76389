import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, createWriteStream, mkdirSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';
import { waitUntil } from '../wait-until';
import { guard } from './watchdog';

/** How a process ended: one of `code` and `signal` is set, as Node reports it. */
export interface ProcessExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A program, and how to tell that it is ready. */
export interface ProcessDescription {
  /** Unique in its group; names the log file and the lines of `echo`. */
  name: string;
  command: readonly [string, ...string[]];
  /** Added to the environment of this process; `undefined` takes a variable away. */
  environment?: Readonly<Record<string, string | undefined>>;
  workingFolder?: string;
  /** Standard output and error are appended here. */
  logFile: string;
  /** Gets each line of output too, as `[name] line`. Without it the child writes to the file with no detour. */
  echo?: (line: string) => void;
  /** True when the process can do its work. An HTTP address stands for "answers 200". Default: ready at once. */
  ready?: string | ((process: ManagedProcess) => Promise<boolean>);
  /** Default 90,000 ms: a busy machine starts processes slowly. */
  readyTimeoutMs?: number;
  /** Removed by the watchdog if this Node process dies first. */
  folderToRemove?: string;
}

const DEFAULT_READY_TIMEOUT_MS = 90_000;
const DEFAULT_GRACE_MS = 10_000;

/**
 * One child process (and whatever it starts: it leads a process group of its own, so that Ctrl-C in the terminal
 * reaches only us and we decide the order of the end). It never outlives this Node process.
 */
export class ManagedProcess {
  private child?: ChildProcess;
  private ended: Promise<ProcessExit> = Promise.resolve({ code: null, signal: null });
  private last?: ProcessExit;

  constructor(readonly description: ProcessDescription) {}

  get name(): string {
    return this.description.name;
  }

  /** The process id of the present run, or of the last one. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  get running(): boolean {
    return this.child?.pid !== undefined && this.last === undefined;
  }

  /** Resolves when the present run ends; at once when none runs. */
  get exited(): Promise<ProcessExit> {
    return this.ended;
  }

  /** How the last run ended; undefined while it runs or before the first one. */
  get lastExit(): ProcessExit | undefined {
    return this.last;
  }

  /**
   * Starts the process and waits until it is ready.
   *
   * @throws BroomwagonError UNAVAILABLE when it cannot be started or ends before it is ready, TIMEOUT when it is not
   * ready in time (it is ended then); both carry the end of its log.
   */
  async start(): Promise<void> {
    if (this.running) throw new BroomwagonError('INTERNAL', `${this.name} runs already`);
    await this.spawn();
    try {
      await this.whenReady();
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  /** Waits for readiness of the present run; errors as in `start`. */
  async whenReady(): Promise<void> {
    const { ready, readyTimeoutMs } = this.description;
    if (ready === undefined) return;
    try {
      await waitUntil(
        async () => {
          if (this.last !== undefined) {
            const how = this.last.signal ?? `exit code ${this.last.code}`;
            throw new BroomwagonError('UNAVAILABLE', `${this.name} ended before it was ready (${how})`);
          }
          return typeof ready === 'string' ? answersOk(ready) : ready(this);
        },
        { what: `${this.name} to be ready`, timeoutMs: readyTimeoutMs ?? DEFAULT_READY_TIMEOUT_MS },
      );
    } catch (error) {
      if (!(error instanceof BroomwagonError)) throw error;
      const tail = await this.logTail(20);
      throw new BroomwagonError(error.code, tail === '' ? error.message : `${error.message}. Its log ends:\n${tail}`, {
        details: { logFile: this.description.logFile, exit: this.last },
        cause: error,
      });
    }
  }

  /** Sends a signal to the process and its descendants. False when it has ended. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): boolean {
    if (!this.running || this.child?.pid === undefined) return false;
    return signalGroup(this.child.pid, signal);
  }

  /** SIGSTOP: alive and silent, as a machine that hangs. */
  pause(): boolean {
    return this.kill('SIGSTOP');
  }

  /** SIGCONT after `pause`. */
  resume(): boolean {
    return this.kill('SIGCONT');
  }

  /** SIGTERM, then SIGKILL when it has not ended within `graceMs` (default 10,000). Returns how it ended. */
  async stop(graceMs = DEFAULT_GRACE_MS): Promise<ProcessExit> {
    if (this.kill('SIGTERM')) {
      this.resume();
      const timer = new AbortController();
      const graceOver = delay(graceMs, false, { signal: timer.signal }).catch(() => false);
      const inTime = await Promise.race([this.ended.then(() => true), graceOver]);
      timer.abort();
      if (!inTime) this.kill('SIGKILL');
    }
    return this.ended;
  }

  /** Ends the process (if it runs) and starts the same description again. */
  async restart(graceMs?: number): Promise<void> {
    await this.stop(graceMs);
    await this.start();
  }

  /** The last lines of the log; empty when there is none. */
  async logTail(lines: number): Promise<string> {
    const text = await readFile(this.description.logFile, 'utf8').catch(() => '');
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }

  private async spawn(): Promise<void> {
    const { command, environment, workingFolder, logFile, echo, folderToRemove } = this.description;
    mkdirSync(dirname(logFile), { recursive: true });
    const log = openSync(logFile, 'a');
    const output = echo === undefined ? log : 'pipe';
    const child = spawn(command[0], command.slice(1), {
      cwd: workingFolder,
      env: { ...process.env, ...environment },
      stdio: ['ignore', output, output],
      detached: true,
    });
    this.child = child;
    this.last = undefined;
    if (echo !== undefined) this.copyOutput(child, logFile, echo);
    closeSync(log);

    const pid = child.pid;
    const watchdog = pid === undefined ? undefined : guard(pid, folderToRemove);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        watchdog?.release();
        // Descendants end with their leader; now, while the group id cannot have been given to another process.
        if (pid !== undefined) signalGroup(pid, 'SIGKILL');
        this.last = { code, signal };
        resolve(this.last);
      });
    });
    if (pid !== undefined) return;
    this.ended = Promise.resolve({ code: null, signal: null });
    this.child = undefined;
    const cause = await new Promise<Error>((resolve) => child.once('error', resolve));
    throw new BroomwagonError('UNAVAILABLE', `${this.name} cannot be started: ${cause.message}`, { cause });
  }

  private copyOutput(child: ChildProcess, logFile: string, echo: (line: string) => void): void {
    const file = createWriteStream(logFile, { flags: 'a' });
    let open = 2;
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream })
        .on('line', (line) => {
          file.write(`${line}\n`);
          echo(`[${this.name}] ${line}`);
        })
        .on('close', () => {
          open -= 1;
          if (open === 0) file.end();
        });
    }
  }
}

/** False when the group has no process left. */
function signalGroup(groupId: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(process.platform === 'win32' ? groupId : -groupId, signal);
  } catch (error) {
    // EPERM: macOS returns it for a group whose last member is a zombie.
    if (['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

async function answersOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
  return response.status === 200;
}
