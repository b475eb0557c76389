import type { Redis } from 'ioredis';
import { transition, type FunctionRunner } from '../library/function-runner';
import type { Finding } from './findings';
import { keysBelow } from './key-scan';

interface CheckpointsLook {
  findings: Finding[];
  checkpoints: { number: string; tag: string; groups: number; requests: number }[];
}
const checkpointsScript = transition<{ job: string; numbers: string[]; repair: boolean }, CheckpointsLook>(
  'audit/checkpoints',
);

/** A saved group as the scripts write it; group and requests are lists of fields and values. */
interface SavedGroup {
  group: string[];
  requests: string[][];
}

/** Looks once at the checkpoints of a job: each whole, and none that nobody would delete. */
export class CheckpointAudit {
  constructor(
    private readonly redis: Redis,
    private readonly runner: FunctionRunner,
  ) {}

  /** @param onRef is told each payload that a checkpoint names */
  async look(
    pool: string,
    job: string,
    repair: boolean,
    onRef: (owner: string, ref: string) => void,
  ): Promise<Finding[]> {
    const prefix = `${this.runner.rootKey(pool)}:checkpoint-groups:${job}/`;
    const numbers = new Set<string>();
    for await (const keys of keysBelow(this.redis, prefix))
      for (const key of keys) numbers.add(key.slice(prefix.length));
    const look = await this.runner.run(checkpointsScript, pool, { job, numbers: [...numbers], repair });
    for (const { number, tag, requests } of look.checkpoints) {
      const counted = await this.count(`${prefix}${number}`, (ref) => onRef(`${job}/${tag}`, ref));
      // One that was deleted meanwhile is not there in the next look.
      if (counted === requests) continue;
      const says = `${requests} requests, ${counted} whole ones there`;
      look.findings.push({ check: 'checkpoint-requests', where: `${job}/${tag}`, says, repaired: false });
    }
    return look.findings;
  }

  /** Requests of whole groups. */
  private async count(key: string, onRef: (ref: string) => void): Promise<number> {
    const seen = new Map<string, number>();
    const stream = this.redis.hscanStream(key, { count: 128 }) as AsyncIterable<string[]>;
    for await (const entries of stream) {
      for (let at = 0; at < entries.length; at += 2) {
        const saved = JSON.parse(entries[at + 1]!) as SavedGroup;
        onRef(valueOf(saved.group, 'promptRef')!);
        const whole = saved.requests.filter((request) => valueOf(request, 'state') !== undefined);
        for (const request of whole) {
          const segments = JSON.parse(valueOf(request, 'segments') ?? '[]') as { ref: string }[];
          for (const { ref } of segments) onRef(ref);
        }
        seen.set(entries[at]!, whole.length);
      }
    }
    return [...seen.values()].reduce((sum, requests) => sum + requests, 0);
  }
}

function valueOf(fields: readonly string[], name: string): string | undefined {
  const at = fields.findIndex((field, position) => position % 2 === 0 && field === name);
  return at < 0 ? undefined : fields[at + 1];
}
