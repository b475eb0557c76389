import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { encodeComposedId, encodeId, type Segment } from '@broomwagon/contracts';
import type { Lease, MadeSegment } from '@broomwagon/generation';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore } from '@broomwagon/state';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';

/**
 * Stores the tokens of an attempt. The name of each payload has a random part, because a Redis that has lost its last
 * seconds may assign the same attempt again. The coordinator removes payloads that are not needed any more.
 */
@Injectable()
export class SegmentSaver {
  constructor(
    private readonly payloads: PayloadStore,
    private readonly config: WorkerConfig,
  ) {}

  /**
   * @throws BroomwagonError PAYLOAD_STORE_FULL or UNAVAILABLE at the deadline, PAYLOAD_TOO_LARGE
   */
  async save(
    attempt: Attempt,
    lease: Pick<Lease, 'serverId' | 'epoch' | 'weightVersion'>,
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
