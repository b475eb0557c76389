import { setMaxListeners } from 'node:events';
import { Logger } from '@nestjs/common';
import { isBroomwagonError, outages } from '@broomwagon/contracts';
import type { Metrics } from '../metrics';

/** Maximum random change of each pause, as a share, so that replicas do not run at the same time. */
const JITTER = 0.1;
/** Time in which a repeated failure is logged once, so that an outage does not fill the log. */
const LOGGED_AGAIN_MS = 60_000;

export interface PeriodicTaskOptions {
  /** Name of the task in logs and metrics. */
  name: string;
  /** Pause between the end of a run and the next run, milliseconds. */
  intervalMs: number;
  /** True: the first run is at the start instead of after the first pause. Default false. */
  isImmediate?: boolean;
  metrics: Metrics;
}

/**
 * Runs an asynchronous function periodically, never two runs at once. After an error, the next run is on schedule.
 * Errors are counted and logged; the same error is logged once a minute, and not while an open outage explains it.
 */
export class PeriodicTask {
  private readonly logger: Logger;
  private readonly failures;
  private readonly abort = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private started = false;
  /** Failed runs since the last successful run. */
  private streak?: { runs: number; beganAtMs: number; logged: string; loggedAtMs: number };

  /** @param run called with a signal that is aborted when the task is stopped */
  constructor(
    private readonly options: PeriodicTaskOptions,
    private readonly run: (signal: AbortSignal) => Promise<unknown>,
  ) {
    this.logger = new Logger(`PeriodicTask ${options.name}`);
    this.failures = options.metrics.counter('task_failures_total', 'Failed runs of periodic tasks; see the log', [
      'task',
    ]);
    // A series must begin with 0, because Prometheus does not see the increase of a series that begins with 1.
    this.failures.inc({ task: options.name }, 0);
    // Many calls of one run may listen to the signal.
    setMaxListeners(0, this.abort.signal);
  }

  start(): void {
    if (this.started || this.abort.signal.aborted) return;
    this.started = true;
    this.schedule(this.options.isImmediate ? 0 : this.pauseMs());
  }

  /** Stops the task, and waits for the run in progress. */
  async stop(): Promise<void> {
    this.abort.abort();
    clearTimeout(this.timer);
    await this.running;
  }

  private schedule(pauseMs: number): void {
    this.timer = setTimeout(() => {
      this.running = this.runOnce();
    }, pauseMs);
  }

  private async runOnce(): Promise<void> {
    try {
      await this.run(this.abort.signal);
      this.noteSuccess();
    } catch (error) {
      if (!this.abort.signal.aborted) this.noteFailure(error);
    }
    this.running = undefined;
    if (!this.abort.signal.aborted) this.schedule(this.pauseMs());
  }

  private noteFailure(error: unknown): void {
    this.failures.inc({ task: this.options.name });
    if (outages.explains(error)) return;
    const nowMs = performance.now();
    this.streak ??= { runs: 0, beganAtMs: nowMs, logged: '', loggedAtMs: 0 };
    this.streak.runs++;
    const message = error instanceof Error ? error.message : String(error);
    if (message === this.streak.logged && nowMs - this.streak.loggedAtMs < LOGGED_AGAIN_MS) return;
    this.streak = { ...this.streak, logged: message, loggedAtMs: nowMs };
    // An unavailable store is not a defect of this service.
    const level = isBroomwagonError(error, 'UNAVAILABLE') ? 'warn' : 'error';
    this.logger[level]({ err: error, task: this.options.name }, 'The run failed; the next run is on schedule');
  }

  private noteSuccess(): void {
    if (this.streak === undefined) return;
    const { runs, beganAtMs } = this.streak;
    this.streak = undefined;
    this.logger.log(`The task runs again after ${runs} failed runs in ${Math.round(performance.now() - beganAtMs)} ms`);
  }

  private pauseMs(): number {
    return this.options.intervalMs * (1 + JITTER * (2 * Math.random() - 1));
  }
}
