import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, type JobId, type RequestCounts } from '@broomwagon/contracts';
import type { StepReport } from './step-report';
import type { Operations } from './operations';

const SETTLE_POLL_MS = 100;
/** Maximum wait at the end for the counts of cut, requeued and trained groups. */
const SETTLE_DEADLINE_MS = 15_000;

/**
 * Counts that are final only after their step: cut requests are confirmed later, and trained groups are folded later.
 */
export class StepCounts {
  /** Steps whose cut had not been confirmed at the last read. */
  private readonly unsettled = new Set<StepReport>();
  /** Counts of the job at the end, once its last round is folded. */
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

  /** Reads the counts once, and reports each step whose round is settled. */
  async settle(): Promise<void> {
    for (const report of this.unsettled) {
      const settled = await this.read(report);
      if (!settled) return;
      this.unsettled.delete(report);
      this.onStep(report);
    }
  }

  /** Waits for the counts of all steps, but not for ever. */
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
