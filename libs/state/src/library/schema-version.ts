import { hostname } from 'node:os';
import { BroomwagonError, type PoolName } from '@broomwagon/contracts';
import { readTime } from '../redis';
import type { RedisClient } from '../redis-cluster';

/**
 * Version of the layout in which this code stores pools. Each pool has the version of its data in its hash `meta`. Code
 * of version N reads and writes pools of N and N + 1, reads pools of N - 1, and raises these to N unless a live replica
 * is older than N - 1. Every change of the layout increases the version by one. A change that the previous version
 * cannot read takes two versions: the first reads the new layout, the second writes it. See decisions/0076.
 */
export const SCHEMA_VERSION = 1;

/** Milliseconds without a mark after which a replica counts as stopped. A live replica writes a mark every minute. */
const REPLICA_LIVES_MS = 150_000;

/** Version of the pool that a transition refused; undefined for another error. */
export function refusedVersion(error: unknown): number | undefined {
  const found = error instanceof Error ? /^SCHEMA (\d+)/.exec(error.message) : null;
  return found ? Number(found[1]) : undefined;
}

/** Error for a pool that this code cannot use, with advice. @param own version of this code */
export function unsupportedSchema(pool: PoolName, stored: number, own: number): BroomwagonError {
  const advice =
    stored > own
      ? `update this replica to a release of schema ${stored - 1} or ${stored}`
      : `it raises pools of schema ${own - 1} only; run a release of each schema between on all replicas first`;
  const message = `The pool ${pool} is stored in schema ${stored}, but this replica has schema ${own}: ${advice}`;
  return new BroomwagonError('SCHEMA_UNSUPPORTED', message, { details: { stored, own } });
}

/** The live replicas of one deployment, with the schema version of each: a mark in a sorted set, by time. */
export class ReplicaMarks {
  private readonly key: string;
  private readonly mark: string;

  constructor(
    private readonly redis: RedisClient,
    keyPrefix: string,
    private readonly schemaVersion = SCHEMA_VERSION,
    name = `${hostname()}:${process.pid}`,
  ) {
    this.key = `${keyPrefix}:replicas`;
    this.mark = `${schemaVersion}|${name}`;
  }

  /** Writes the mark of this replica, and deletes the marks of stopped replicas. @throws Error of Redis */
  async write(): Promise<void> {
    const nowMs = await readTime(this.redis);
    await this.redis.zadd(this.key, nowMs, this.mark);
    await this.redis.zremrangebyscore(this.key, '-inf', nowMs - REPLICA_LIVES_MS);
  }

  /** Does a write without effect, also in a full Redis. @throws Error of Redis, such as READONLY of a replica */
  async checkWritable(): Promise<void> {
    await this.redis.zrem(this.key, '');
  }

  /** Deletes the mark of this replica, which stops. @throws Error of Redis */
  async remove(): Promise<void> {
    await this.redis.zrem(this.key, this.mark);
  }

  /** @throws BroomwagonError SCHEMA_UNSUPPORTED: a live replica cannot read pools of this version; or Error of Redis */
  async checkOthers(): Promise<void> {
    const marks = await this.redis.zrangebyscore(this.key, (await readTime(this.redis)) - REPLICA_LIVES_MS, '+inf');
    const readable = this.schemaVersion - 1;
    const older = marks.map((mark) => mark.split('|')).filter(([version]) => Number(version) < readable);
    if (older.length === 0) return;
    const names = older.map(([version, name]) => `${name} (schema ${version})`).join(', ');
    const message =
      `Live replicas cannot read pools of schema ${this.schemaVersion}, which this replica writes: ${names}. ` +
      `Update them to a release of schema ${readable}, or stop them; a mark counts for ${REPLICA_LIVES_MS / 1_000} s`;
    throw new BroomwagonError('SCHEMA_UNSUPPORTED', message, { details: { own: this.schemaVersion, older: names } });
  }
}
