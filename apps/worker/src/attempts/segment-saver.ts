import { Injectable, Logger } from '@nestjs/common';
import type { LeaseGrant, Segment } from '@broomwagon/contracts';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore } from '@broomwagon/state';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import type { MadeSegment } from './token-collector';

/**
 * Stores what an attempt made. A payload is never written twice: its name is attempt and token count, so a reference
 * in the books always leads to exactly the tokens it was given for, even when a stopped and continued process writes
 * late. What the books have been moved on from is removed.
 */
@Injectable()
export class SegmentSaver {
  private readonly logger = new Logger(SegmentSaver.name);

  constructor(
    private readonly payloads: PayloadStore,
    private readonly config: WorkerConfig,
  ) {}

  /** @throws BroomwagonError PAYLOAD_STORE_FULL or UNAVAILABLE when it stayed so until the deadline, PAYLOAD_TOO_LARGE */
  async save(
    attempt: Attempt,
    lease: LeaseGrant,
    made: MadeSegment,
    deadlineMs: number = this.config.transitionDeadlineMs,
  ): Promise<Segment> {
    const { job, requestId } = attempt.claim;
    const name = {
      pool: this.config.pool,
      job,
      owner: requestId,
      name: `${attempt.claim.attempt}.${made.tokenCount}`,
    };
    const bytes = Buffer.from(JSON.stringify(made.payload));
    const ref = await withRetry(() => this.payloads.put(name, bytes), { deadlineMs });
    if (!attempt.savedRefs.includes(ref)) attempt.savedRefs.push(ref);
    const segment: Segment = {
      attempt: attempt.claim.attempt,
      serverId: lease.serverId,
      serverEpoch: lease.epoch,
      weightVersion: lease.weightVersion,
      tokenCount: made.tokenCount,
      ref,
    };
    return made.resumedBy === 'text' ? { ...segment, resumedBy: 'text' } : segment;
  }

  /** The books now have `kept` of this attempt: what was stored before it is removed. Never throws. */
  async keepOnly(attempt: Attempt, kept: Segment): Promise<void> {
    const older = attempt.savedRefs.filter((ref) => ref !== kept.ref);
    if (older.length === 0) return;
    attempt.savedRefs.splice(0, attempt.savedRefs.length, kept.ref);
    await this.payloads
      .remove(older)
      .catch((error: Error) => this.logger.warn(`Left to the sweep of orphans: ${error.message}`));
  }
}
