import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError } from '@broomwagon/contracts';
import type { ManagedProcess, ProcessExit } from '@broomwagon/testing';
import { RunFailure } from './run-failure';

/** Most restarts of a process within the window; a process that ends more often fails the run. */
const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 60_000;
const RESTART_PAUSE_MS = 200;
const SHOWN_LOG_LINES = 15;
const ADVICE = 'The reason is above. If the machine ran out of memory, use fewer --groups or --samples.';

/**
 * Keeps processes running: a process that ends is restarted with its data and ports, also if it ends during its start.
 * A process that keeps ending fails the run with the end of its log.
 */
export class Supervisor {
  private stopped = false;
  private fail!: (error: RunFailure) => void;
  /** Times of the restarts of each process within the window, milliseconds. */
  private readonly restartsMs = new WeakMap<ManagedProcess, number[]>();
  /** Rejects when the run cannot continue. */
  readonly failed: Promise<never>;

  constructor(
    private readonly say: (line: string) => void,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.failed = new Promise((_, reject) => (this.fail = reject));
    this.failed.catch(() => undefined);
  }

  /**
   * Starts a process and watches it from then on.
   * @throws RunFailure when it keeps ending; BroomwagonError TIMEOUT when it does not get ready
   */
  async start(service: ManagedProcess, restarted?: () => Promise<void>): Promise<void> {
    await this.startAgainAndAgain(service);
    this.watch(service, restarted);
  }

  /** Watches a process that runs. `restarted` is called after each new start. */
  watch(service: ManagedProcess, restarted?: () => Promise<void>): void {
    this.keepRunning(service, restarted).catch((error: unknown) => this.failWith(error));
  }

  /** Fails the run, unless the supervisor is stopped. */
  failWith(error: unknown): void {
    if (this.stopped) return;
    this.fail(error instanceof RunFailure ? error : new RunFailure((error as Error).message, [ADVICE], error));
  }

  /** Stops watching: processes may end from now on. */
  stop(): void {
    this.stopped = true;
  }

  private async keepRunning(service: ManagedProcess, restarted?: () => Promise<void>): Promise<void> {
    for (;;) {
      const exit = await service.exited;
      if (this.stopped) return;
      await this.countRestart(service, exit);
      this.say(
        `${service.name} ended (${describeExit(exit)}); it is restarted. Its log: ${service.description.logFile}`,
      );
      await this.startAgainAndAgain(service);
      if (this.stopped) return void (await service.stop());
      this.say(`${service.name} runs again`);
      await restarted?.();
    }
  }

  private async startAgainAndAgain(service: ManagedProcess): Promise<void> {
    for (;;) {
      try {
        return await service.start();
      } catch (error) {
        // A process that was only slow was ended by us, and another start would be as slow.
        if (this.stopped || !isBroomwagonError(error, 'UNAVAILABLE') || service.lastExit === undefined) throw error;
        await this.countRestart(service, service.lastExit);
        const how = describeExit(service.lastExit);
        this.say(`${service.name} ended while it was starting (${how}); it is restarted`);
        await delay(RESTART_PAUSE_MS);
      }
    }
  }

  /** @throws RunFailure when the process has been restarted too often */
  private async countRestart(service: ManagedProcess, exit: ProcessExit): Promise<void> {
    const nowMs = this.nowMs();
    const recent = (this.restartsMs.get(service) ?? []).filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS);
    if (recent.length === MAX_RESTARTS) {
      const log = await service.logTail(SHOWN_LOG_LINES);
      throw new RunFailure(
        `${service.name} ended (${describeExit(exit)}) after ${MAX_RESTARTS} restarts in a minute. Its log:\n${log}`,
        [ADVICE],
      );
    }
    this.restartsMs.set(service, [...recent, nowMs]);
  }
}

function describeExit({ code, signal }: ProcessExit): string {
  return signal ?? `exit code ${code}`;
}
