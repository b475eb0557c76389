import { mkdtemp, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis } from '../servers/redis-server';
import type { ServerHandle } from '../servers/server-handle';
import { nowMs, type RedisHistory, sampleOf } from './redis-history';

const SAMPLE_INTERVAL_MS = 25;
/** Without rewrites there is one file, which only grows. */
const CONFIGURATION = 'auto-aof-rewrite-percentage 0\naof-load-truncated yes';
const FILE = join('appendonlydir', 'appendonly.aof.1.incr.aof');

/** A Redis that loses the end of its append-only file, as a machine does that loses power. */
export class TruncatedFile implements RedisHistory {
  private samples: { atMs: number; bytes: number }[] = [];
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly redis: ServerHandle,
    private readonly file: string,
    private readonly cutBytes: () => number,
  ) {
    this.timer = setInterval(() => void this.sample(), SAMPLE_INTERVAL_MS);
  }

  /** @param cutBytes how many bytes more each set-back cuts, so that the file may end in the middle of a command */
  static async start(cutBytes: () => number = () => 0): Promise<TruncatedFile> {
    const folder = await mkdtemp(join(tmpdir(), 'broomwagon-set-back-'));
    const redis = await startRedis({ folder, configuration: CONFIGURATION });
    const history = new TruncatedFile(redis, join(folder, FILE), cutBytes);
    await history.sample();
    return history;
  }

  get url(): string {
    return this.redis.url;
  }

  async setBack(lostMs: number): Promise<number> {
    const setBackMs = nowMs();
    await this.redis.kill();
    const { atMs, bytes } = sampleOf(this.samples, setBackMs - lostMs);
    await truncate(this.file, Math.max(0, bytes - this.cutBytes()));
    await this.redis.restart();
    this.samples = [];
    await this.sample();
    return setBackMs - atMs;
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.redis.stop();
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
