import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, type JobId, type RequestCounts } from '@broomwagon/contracts';
import type { StepReport } from './step-report';
import type { Operations } from './operations';

const SETTLE_POLL_MS = 100;
/** The counts of what was cut, requeued and trained are waited for this long at the end. */
const SETTLE_DEADLINE_MS = 15_000;

/** Counts that follow a step: what its round has cut is confirmed later, and what it has trained is folded later. */
export class StepCounts {
  /** Steps whose cut had not been confirmed at the last look. */
  private readonly unsettled = new Set<StepReport>();
  /** Of the job at the end, once its last round is folded. */
  ofJob: RequestCounts | undefined;

  /** @param onStep called once for each step, when its counts are final */
  constructor(
    private readonly operations: Operations,
    private readonly job: JobId,
    private readonly onStep: (step: StepReport) => void = () => undefined,
    private readonly signal?: AbortSignal,
  ) {}

  add(report: StepReport): void {
    this.unsettled.add(report);
  }

  /** Reads counts once; the step is reported when its round is settled. */
  async settle(): Promise<void> {
    for (const report of this.unsettled) {
      const settled = await this.read(report);
      if (!settled) return;
      this.unsettled.delete(report);
      this.onStep(report);
    }
  }

  /** Waits for all of them, but not for ever. */
  async settleAll(): Promise<void> {
    for (const endsMs = performance.now() + SETTLE_DEADLINE_MS; performance.now() < endsMs;) {
      await this.settle();
      this.ofJob = (await this.operations.call('job.status', { job: this.job })).requests;
      const { submitted, trained, failed, dropped } = this.ofJob;
      if (this.unsettled.size === 0 && trained + failed + dropped === submitted) return;
      await delay(SETTLE_POLL_MS, undefined, { signal: this.signal });
    }
    for (const report of this.unsettled) this.onStep(report);
  }

  private async read(report: StepReport): Promise<boolean> {
    try {
      const status = await this.operations.call('round.status', { job: this.job, roundId: report.roundId });
      report.requestsDone = status.requestsDone;
      report.requestsCut = status.requestsCut;
      report.groupsRequeued = status.groupsRequeued;
      return status.settled;
    } catch (error) {
      // Summaries of old rounds are not kept for ever.
      if (isBroomwagonError(error, 'ROUND_NOT_FOUND')) return true;
      throw error;
    }
  }
}
