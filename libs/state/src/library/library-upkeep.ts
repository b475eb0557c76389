import { Logger } from '@nestjs/common';
import { readTime } from '../redis';
import { listPrimaries, type RedisClient } from '../redis-cluster';
import { theLibrary } from './function-runner';
import type { ReplicaMarks } from './schema-version';

/**
 * Sorted set of the libraries by last use, milliseconds since 1970. All deployments on one Redis or Cluster share it,
 * whatever their prefixes, because libraries belong to its primaries.
 */
export const LIBRARIES_KEY = 'broomwagon:libraries';
const NOTE_EVERY_MS = 60_000;
/** A library that no replica has used for this long is deleted, milliseconds: its version no longer runs. */
const UNUSED_AFTER_MS = 3_600_000;

/**
 * Notes in Redis that this replica is live and uses the library of this version, and deletes libraries that no replica
 * of any deployment has used for an hour. While two versions run, each has its own library. Calls load a missing
 * library.
 */
export class LibraryUpkeep {
  private readonly logger = new Logger(LibraryUpkeep.name);
  private timer?: NodeJS.Timeout;
  private hasFailed = false;

  constructor(
    private readonly redis: RedisClient,
    private readonly marks?: ReplicaMarks,
    private readonly unusedAfterMs = UNUSED_AFTER_MS,
  ) {}

  /** Reviews the libraries at once and then every minute, until `stop`. */
  start(): void {
    if (this.timer) return;
    this.timer = setInterval(() => void this.look(), NOTE_EVERY_MS).unref();
    void this.look();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async look(): Promise<void> {
    try {
      await this.review();
      this.hasFailed = false;
    } catch (error) {
      // Calls load a missing library themselves, so the error is logged once, and the next review is in a minute.
      if (!this.hasFailed) this.logger.warn({ err: error }, 'The libraries in Redis could not be maintained');
      this.hasFailed = true;
    }
  }

  /** Reviews the libraries once. @throws Error of Redis */
  async review(): Promise<void> {
    await this.marks?.write();
    const { name } = theLibrary();
    const nowMs = await readTime(this.redis);
    await this.redis.zadd(LIBRARIES_KEY, nowMs, name);
    for (const unused of await this.redis.zrangebyscore(LIBRARIES_KEY, '-inf', nowMs - this.unusedAfterMs)) {
      let isKept = false;
      for (const primary of listPrimaries(this.redis)) {
        await primary.function('DELETE', unused).catch((error: unknown) => {
          // Another service may have the right to delete the library.
          if (String(error).includes('NOPERM')) isKept = true;
          else if (!String(error).includes('Library not found')) throw error;
        });
      }
      if (isKept) continue;
      await this.redis.zrem(LIBRARIES_KEY, unused);
      this.logger.log(
        `Library ${unused} was deleted: no replica has used it for ${Math.round(this.unusedAfterMs / 60_000)} minutes`,
      );
    }
  }
}
