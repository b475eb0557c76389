import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type JobId, type PoolName } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { JobStore, PayloadStore, RoundStore, type PayloadUsage, type SubmitRoom } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../grants/grant.service';

const LOOK_INTERVAL_MS = 1_000;

/**
 * Stops the claims of a job while its tokens cannot be stored: its payloads are near their quota, or the store takes no
 * payloads. Otherwise the tokens would be generated again and again. Claims continue when there is room again.
 */
@Injectable()
export class PayloadRoomService {
  private readonly logger = new Logger(PayloadRoomService.name);

  constructor(
    private readonly payloads: PayloadStore,
    private readonly jobs: JobStore,
    private readonly rounds: RoundStore,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** Checks all jobs with a round that is not closed. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('payload-room', LOOK_INTERVAL_MS)
  async lookAtAll(pool: PoolName): Promise<void> {
    let blocked = 0;
    for (const job of await this.rounds.allJobs(pool, true)) if (await this.look(pool, job)) blocked += 1;
    this.metrics.blockedJobs.set({ pool }, blocked);
  }

  /**
   * Checks the room of a job.
   * @param isRefused the store has just refused tokens of this job
   * @returns whether requests of the job are not claimed now
   * @throws BroomwagonError UNAVAILABLE
   */
  async look(pool: PoolName, job: JobId, isRefused = false): Promise<boolean> {
    const usage = await this.usageNow(pool, job);
    const bytesPerToken = this.config.payloadReserveBytesPerToken;
    const { blocked, changed, madeRoom } = await this.jobs.payloadRoom(pool, {
      job,
      ...usage,
      bytesPerToken,
      isRefused,
    });
    if (changed && blocked) {
      const why = usage.fault ?? 'The payloads of the job are near their quota';
      this.logger.warn({ pool, job, ...usage }, `${why}: the requests of the job are not claimed`);
    }
    if (changed && !blocked) this.logger.log({ pool, job, ...usage }, 'The payloads of the job have room again');
    if (madeRoom) this.grants.soon(pool);
    return blocked;
  }

  /** Bytes that the payloads of a job use, with a fault if the store is unavailable. */
  private async usageNow(pool: PoolName, job: JobId): Promise<PayloadUsage & { fault?: string }> {
    try {
      await this.payloads.checkWritable().catch((error: unknown) => {
        // A full store still reports usage, and a job without room is known by its usage.
        if (!isBroomwagonError(error, 'PAYLOAD_STORE_FULL')) throw error;
      });
      return await this.payloads.usage({ pool, job });
    } catch (error) {
      if (!isBroomwagonError(error, 'UNAVAILABLE')) throw error;
      return { usedBytes: 0, quotaBytes: 0, fault: error.message };
    }
  }

  /** Room for samples to be submitted. @throws BroomwagonError UNAVAILABLE */
  async readRoom(pool: PoolName, job: JobId): Promise<SubmitRoom> {
    const { usedBytes, quotaBytes } = await this.payloads.usage({ pool, job });
    const bytesPerToken = this.config.payloadReserveBytesPerToken;
    return { freeBytes: quotaBytes - usedBytes, quotaBytes, bytesPerToken };
  }
}
