import { isBroomwagonError } from '@broomwagon/contracts';
import type { RedisClient } from '../redis-cluster';
import type { PayloadStore } from '../payload';
import type { FunctionRunner } from '../library/function-runner';
import type { Finding } from './findings';
import { keysBelow } from './key-scan';

/** Payloads asked about at the same time. */
const AT_ONCE = 32;

/** Looks once whether the payload store has what requests, groups and snapshots name. Reads no payload. */
export class PayloadAudit {
  constructor(
    private readonly redis: RedisClient,
    private readonly runner: FunctionRunner,
    private readonly payloads: PayloadStore,
  ) {}

  /** @param named further references, with who names them */
  async look(pool: string, job: string, named: readonly [owner: string, ref: string][]): Promise<PayloadLook> {
    const refs = new Map<string, string>(named.map(([owner, ref]) => [ref, owner]));
    await this.collect(pool, job, refs);
    const findings: Finding[] = [];
    const all = [...refs];
    for (let start = 0; start < all.length; start += AT_ONCE) {
      const page = all.slice(start, start + AT_ONCE).map(([ref, owner]) => this.check(ref, owner));
      findings.push(...(await Promise.all(page)).flat());
    }
    return { findings, references: all.length };
  }

  private async collect(pool: string, job: string, refs: Map<string, string>): Promise<void> {
    const root = this.runner.rootKey(pool);
    await this.read(`${root}:group:${job}/`, ['promptRef'], (id, [promptRef]) => {
      if (promptRef != null) refs.set(promptRef, `${job}/${id}`);
    });
    await this.read(`${root}:request:${job}/`, ['segments', 'savedSegment'], (id, [segments, saved]) => {
      const made = JSON.parse(segments ?? '[]') as { ref: string }[];
      if (saved != null) made.push(JSON.parse(saved) as { ref: string });
      for (const { ref } of made) refs.set(ref, `${job}/${id}`);
    });
  }

  private async read(
    prefix: string,
    fields: string[],
    take: (id: string, values: (string | null)[]) => void,
  ): Promise<void> {
    for await (const keys of keysBelow(this.redis, prefix)) {
      const pipeline = this.redis.pipeline();
      for (const key of keys) pipeline.hmget(key, ...fields);
      const answers = (await pipeline.exec()) ?? [];
      for (const [position, [error, values]] of answers.entries()) {
        if (error) throw error;
        take(keys[position]!.slice(prefix.length), values as (string | null)[]);
      }
    }
  }

  private async check(ref: string, where: string): Promise<Finding[]> {
    try {
      await this.payloads.stat(ref);
      return [];
    } catch (error) {
      if (!isBroomwagonError(error) || error.code === 'UNAVAILABLE') throw error;
      const check = error.code === 'PAYLOAD_NOT_FOUND' ? 'payload-missing' : 'payload-unreadable';
      return [{ check, where, says: ref, repaired: false }];
    }
  }
}

export interface PayloadLook {
  findings: Finding[];
  /** References looked at. */
  references: number;
}
