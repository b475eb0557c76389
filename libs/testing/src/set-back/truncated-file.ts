import { mkdtemp, readdir, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis } from '../servers/redis-server';
import type { ServerHandle } from '../servers/server-handle';
import { waitUntil } from '../wait-until';
import { nowMs, type RedisHistory, findSample } from './redis-history';

const SAMPLE_INTERVAL_MS = 25;
/** Without rewrites of its own the last file only grows. */
const CONFIGURATION = 'auto-aof-rewrite-percentage 0\naof-load-truncated yes';
const FOLDER = 'appendonlydir';

/** A Redis that loses the end of its append-only file, as a machine does that loses power. */
export class TruncatedFile implements RedisHistory {
  private samples: { atMs: number; bytes: number }[] = [];
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly redis: ServerHandle,
    private readonly folder: string,
    private file: string,
    private readonly cutBytes: () => number,
  ) {
    this.timer = setInterval(() => void this.sample(), SAMPLE_INTERVAL_MS);
  }

  /** @param cutBytes how many bytes more each set-back cuts, so that the file may end in the middle of a command */
  static async start(cutBytes: () => number = () => 0): Promise<TruncatedFile> {
    const folder = await mkdtemp(join(tmpdir(), 'broomwagon-set-back-'));
    const redis = await startRedis({ folder, configuration: CONFIGURATION });
    const history = new TruncatedFile(redis, folder, await lastFile(folder), cutBytes);
    await history.sample();
    return history;
  }

  get url(): string {
    return this.redis.url;
  }

  async setBack(lostMs: number): Promise<number> {
    const setBackMs = nowMs();
    await this.redis.kill();
    const { atMs, bytes } = findSample(this.samples, setBackMs - lostMs);
    await truncate(this.file, Math.max(0, bytes - this.cutBytes()));
    await this.redis.restart();
    await this.rewrite();
    this.samples = [];
    await this.sample();
    return setBackMs - atMs;
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.redis.stop();
  }

  /**
   * Rewrites the file, as described in docs/operations.md. Redis leaves the beginning of a transaction at the end of a
   * file it has shortened, goes on behind it, and carries out that part at its next start.
   */
  private async rewrite(): Promise<void> {
    const client = new Redis(this.redis.url);
    try {
      await client.bgrewriteaof();
      await waitUntil(async () => /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(await client.info()), {
        what: 'the append-only file to be rewritten',
        timeoutMs: 15_000,
      });
    } finally {
      client.disconnect();
    }
    this.file = await lastFile(this.folder);
  }

  private async sample(): Promise<void> {
    const atMs = nowMs();
    const size = await stat(this.file).then(
      (found) => found.size,
      () => undefined,
    );
    if (size !== undefined) this.samples.push({ atMs, bytes: size });
  }
}

/** The file that is written now: the one with the highest number. */
async function lastFile(folder: string): Promise<string> {
  const names = (await readdir(join(folder, FOLDER))).filter((name) => name.endsWith('.incr.aof'));
  const parseFileNumber = (name: string) => Number(/\.(\d+)\.incr/.exec(name)![1]);
  return join(folder, FOLDER, names.toSorted((one, other) => parseFileNumber(one) - parseFileNumber(other)).at(-1)!);
}
