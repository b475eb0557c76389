import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { encodeComposedId, encodeId, LIMITS, type Segment } from '@broomwagon/contracts';
import { Gatherer } from '@broomwagon/engines';
import type { Lease, MadeSegment } from '@broomwagon/generation';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore, type PayloadName } from '@broomwagon/state';
import pLimit from 'p-limit';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';

/** Maximum batches of segments that are written to text, and stored, at once. */
const MAX_BATCHES = 2;

/**
 * Stores the tokens of attempts. The name of each payload has a random part, because a Redis that has lost its last
 * seconds may assign the same attempt again. The coordinator removes payloads that are not needed any more.
 *
 * The tokens of one turn of the event loop are stored together, in batches that wait for one another: a cut ends
 * thousands of attempts at once, and the texts of all of them would fill the memory.
 */
@Injectable()
export class SegmentSaver {
  private readonly limit = pLimit(MAX_BATCHES);
  private readonly puts = new Gatherer<Put>(LIMITS.page, (puts) => void this.limit(() => this.putAll(puts)));

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
    const ref = await withRetry(() => this.put(payload, made), { deadlineMs });
    return buildSegment(attempt, lease, made, ref);
  }

  /** Stores tokens of several attempts, once. @returns the segments, or their errors, in the same order */
  saveAll(all: readonly UnsavedSegment[]): Promise<(Segment | Error)[]> {
    return Promise.all(
      all.map(({ attempt, lease, made, totalTokens }) =>
        this.put(this.buildName(attempt, totalTokens), made).then(
          (ref) => buildSegment(attempt, lease, made, ref),
          (error: Error) => error,
        ),
      ),
    );
  }

  private put(payload: PayloadName, made: MadeSegment): Promise<string> {
    return new Promise((resolve, reject) => this.puts.add({ payload, made, resolve, reject }));
  }

  /** Puts payloads together, and settles each of them: the method never throws. */
  private async putAll(puts: readonly Put[]): Promise<void> {
    const stored = await this.payloads.putMany(puts.map(({ payload, made }) => ({ payload, bytes: toBytes(made) })));
    for (const [index, { resolve, reject }] of puts.entries()) {
      const ref = stored[index]!;
      if (ref instanceof Error) reject(ref);
      else resolve(ref);
    }
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
  made: MadeSegment;
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
