import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { encodeComposedId, encodeId, LIMITS, type Segment } from '@broomwagon/contracts';
import { Gatherer, type Lease, type MadeSegment } from '@broomwagon/generation';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore, type PayloadName } from '@broomwagon/state';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';

/**
 * Stores the tokens of an attempt. The name of each payload has a random part, because a Redis that has lost its last
 * seconds may assign the same attempt again. The coordinator removes payloads that are not needed any more.
 */
@Injectable()
export class SegmentSaver {
  private readonly puts = new Gatherer<Put>(LIMITS.page, (puts) => void this.putAll(puts));

  constructor(
    private readonly payloads: PayloadStore,
    private readonly config: WorkerConfig,
  ) {}

  /**
   * @throws BroomwagonError PAYLOAD_STORE_FULL or UNAVAILABLE at the deadline, PAYLOAD_TOO_LARGE
   */
  async save(
    attempt: Attempt,
    lease: SegmentLease,
    made: MadeSegment,
    deadlineMs: number = this.config.transitionDeadlineMs,
  ): Promise<Segment> {
    const payload = this.buildName(attempt, made.tokenCount);
    const bytes = toBytes(made);
    // Attempts that end in one turn of the event loop are stored together.
    const put = () => new Promise<string>((resolve, reject) => this.puts.add({ payload, bytes, resolve, reject }));
    const ref = await withRetry(put, { deadlineMs });
    return buildSegment(attempt, lease, made, ref);
  }

  /** Never throws. */
  private async putAll(puts: readonly Put[]): Promise<void> {
    const stored = await this.payloads.putMany(puts);
    for (const [index, { resolve, reject }] of puts.entries()) {
      const ref = stored[index]!;
      if (ref instanceof Error) reject(ref);
      else resolve(ref);
    }
  }

  /** Stores tokens of several attempts together, once. @returns the segments, or their errors, in the same order */
  async saveAll(all: readonly UnsavedSegment[]): Promise<(Segment | Error)[]> {
    const stored = await this.payloads.putMany(
      all.map(({ attempt, made, totalTokens }) => ({
        payload: this.buildName(attempt, totalTokens),
        bytes: toBytes(made),
      })),
    );
    return stored.map((ref, index) => {
      const { attempt, lease, made } = all[index]!;
      return ref instanceof Error ? ref : buildSegment(attempt, lease, made, ref);
    });
  }

  private buildName({ claim, worker }: Attempt, tokenCount: number): PayloadName {
    return {
      pool: this.config.pool,
      job: encodeId(claim.job),
      owner: encodeComposedId(claim.requestId),
      name: [worker.workerEpoch, claim.attempt, tokenCount, randomUUID().slice(0, 8)].join('.'),
    };
  }
}

interface Put {
  payload: PayloadName;
  bytes: Buffer;
  resolve(ref: string): void;
  reject(error: Error): void;
}

type SegmentLease = Pick<Lease, 'serverId' | 'epoch' | 'weightVersion'>;

/** Tokens to store. */
export interface UnsavedSegment {
  attempt: Attempt;
  lease: SegmentLease;
  made: MadeSegment;
  /** Tokens of the attempt up to the end of the segment. */
  totalTokens: number;
}

function toBytes({ payload }: MadeSegment): Buffer {
  return Buffer.from(JSON.stringify(payload));
}

function buildSegment({ claim }: Attempt, lease: SegmentLease, made: MadeSegment, ref: string): Segment {
  const segment: Segment = {
    attempt: claim.attempt,
    serverId: lease.serverId,
    serverEpoch: lease.epoch,
    weightVersion: lease.weightVersion,
    tokenCount: made.tokenCount,
    ref,
  };
  return made.resumedBy === 'text' ? { ...segment, resumedBy: 'text' } : segment;
}
