import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManagedProcess, testNatsUrl, testRedisUrl } from '@broomwagon/testing';
import { afterEach, beforeEach } from 'vitest';

/** Runs of `npm start` in a test, with a temporary folder that all processes of the run inherit as their mark. */
export class StartRuns {
  folder!: string;
  private started: ManagedProcess | undefined;

  begin(): void {
    this.folder = mkdtempSync(join(tmpdir(), 'broomwagon-start-'));
  }

  async end(): Promise<void> {
    await this.started?.stop(0);
    rmSync(this.folder, { recursive: true });
  }

  readonly start = (...options: string[]): Promise<ManagedProcess> =>
    this.startWith(testNatsUrl(), testRedisUrl(), options);

  async startWith(natsUrl: string | undefined, redisUrl: string | undefined, options: string[]) {
    this.started = new ManagedProcess({
      name: 'trainer',
      command: [process.execPath, join('dist', 'lab', 'demo', 'src', 'main.js'), ...options],
      environment: { NATS_URL: natsUrl, REDIS_URL: redisUrl, TMPDIR: this.folder },
      logFile: join(this.folder, 'out.log'),
    });
    await this.started.start();
    return this.started;
  }

  readonly output = (): string => readFileSync(join(this.folder, 'out.log'), 'utf8');

  /** Command lines of the processes of the run. */
  readonly left = (): string[] => processes().filter((line) => line.includes(`TMPDIR=${this.folder}`));
}

/** Begins and ends the runs with each test of the file. */
export function useStart(): StartRuns {
  const runs = new StartRuns();
  beforeEach(() => runs.begin());
  afterEach(() => runs.end());
  return runs;
}

/** Command line and environment of every process. A zombie has neither. */
function processes(): string[] {
  if (!existsSync('/proc/self/environ')) {
    return execFileSync('ps', ['-Aww', '-E', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n');
  }
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.map((id) => ['cmdline', 'environ'].map((file) => readText(`/proc/${id}/${file}`)).join(' '));
}

/** The child of a process whose command begins with this program; its watchdog is a shell. */
export function findChild(parent: number, program: string): number | undefined {
  const isChild = (id: string) => new RegExp(`\\) \\S ${parent} `).test(readText(`/proc/${id}/stat`));
  const runs = (id: string) => readText(`/proc/${id}/cmdline`).split(' ', 2).join(' ').includes(program);
  return readdirSync('/proc')
    .filter((id) => /^\d+$/.test(id) && isChild(id) && runs(id))
    .map(Number)[0];
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').replaceAll('\0', ' ');
  } catch {
    // The process has ended, or belongs to another user.
    return '';
  }
}
