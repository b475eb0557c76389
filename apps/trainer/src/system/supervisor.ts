import type { ManagedProcess, ProcessExit } from '@broomwagon/testing';
import { RunFailure } from './run-failure';

/** A service that dies more often than this within the window is broken; one that dies now and then is not. */
const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 60_000;
const SHOWN_LOG_LINES = 15;

/**
 * Starts a service again when it dies: the system is made to go on without any one of its processes. A service that
 * keeps dying, or that must not be started again, fails the run.
 */
export class Supervisor {
  private stopped = false;
  private fail!: (error: RunFailure) => void;
  /** Rejects when the run cannot go on. */
  readonly failed: Promise<never>;

  constructor(
    private readonly say: (line: string) => void,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.failed = new Promise((_, reject) => (this.fail = reject));
    this.failed.catch(() => undefined);
  }

  /** @param restart whether a new start can take over where this one ended */
  watch(service: ManagedProcess, restart: boolean): void {
    void this.keepRunning(service, restart);
  }

  /** From now on processes may end. */
  stop(): void {
    this.stopped = true;
  }

  private async keepRunning(service: ManagedProcess, restart: boolean): Promise<void> {
    let restartsMs: number[] = [];
    for (;;) {
      const exit = await service.exited;
      if (this.stopped) return;
      const nowMs = this.nowMs();
      restartsMs = restartsMs.filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS);
      if (!restart || restartsMs.length === MAX_RESTARTS) {
        this.fail(await failureOf(service, exit, restartsMs.length));
        return;
      }
      restartsMs.push(nowMs);
      this.say(`${service.name} ended (${howOf(exit)}); starting it again. Its log: ${service.description.logFile}`);
      try {
        await service.start();
        if (this.stopped) await service.stop();
      } catch (error) {
        if (!this.stopped) this.fail(new RunFailure((error as Error).message, [ADVICE], error));
        return;
      }
    }
  }
}

const ADVICE = 'Look for the reason above; if the machine ran out of memory, try fewer --groups or --samples.';

async function failureOf(service: ManagedProcess, exit: ProcessExit, restarts: number): Promise<RunFailure> {
  const again = restarts === 0 ? '' : ` after ${restarts} restarts in a minute`;
  const log = await service.logTail(SHOWN_LOG_LINES);
  return new RunFailure(`${service.name} ended (${howOf(exit)})${again}. Its log ends:\n${log}`, [ADVICE]);
}

function howOf({ code, signal }: ProcessExit): string {
  return signal ?? `exit code ${code}`;
}
