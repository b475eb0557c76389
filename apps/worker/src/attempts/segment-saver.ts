import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { encodeComposedId, encodeId, type LeaseGrant, type Segment } from '@broomwagon/contracts';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore } from '@broomwagon/state';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import type { MadeSegment } from './token-collector';

/**
 * Stores what an attempt made. No two payloads have one name: it holds the worker epoch, the attempt, its tokens and a
 * random part, for Redis that lost its last seconds gives out the same attempt again. So a reference always leads to
 * the tokens it was given for. What is no longer needed of them the coordinator removes.
 */
@Injectable()
export class SegmentSaver {
  constructor(
    private readonly payloads: PayloadStore,
    private readonly config: WorkerConfig,
  ) {}

  /**
   * @throws BroomwagonError PAYLOAD_STORE_FULL or UNAVAILABLE when it stayed so until the deadline, PAYLOAD_TOO_LARGE
   */
  async save(
    attempt: Attempt,
    lease: LeaseGrant,
    made: MadeSegment,
    deadlineMs: number = this.config.transitionDeadlineMs,
  ): Promise<Segment> {
    const { job, requestId } = attempt.claim;
    const name = {
      pool: this.config.pool,
      job: encodeId(job),
      owner: encodeComposedId(requestId),
      name: [attempt.worker.workerEpoch, attempt.claim.attempt, made.tokenCount, randomUUID().slice(0, 8)].join('.'),
    };
    const bytes = Buffer.from(JSON.stringify(made.payload));
    const ref = await withRetry(() => this.payloads.put(name, bytes), { deadlineMs });
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
}
