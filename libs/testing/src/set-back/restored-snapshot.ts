import { copyFile, link, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis } from '../servers/redis-server';
import type { ServerHandle } from '../servers/server-handle';
import { nowMs, type RedisHistory, findSample } from './redis-history';

const SNAPSHOT_INTERVAL_MS = 300;

/** A Redis without an append-only file, of which an earlier snapshot is put back. */
export class RestoredSnapshot implements RedisHistory {
  private snapshots: { atMs: number; file: string }[] = [];
  private taken = 0;
  private taking: Promise<void> = Promise.resolve();
  private readonly timer: NodeJS.Timeout;
  private away = false;

  private constructor(
    private readonly redis: ServerHandle,
    private readonly client: Redis,
    private readonly folder: string,
  ) {
    this.timer = setInterval(() => (this.taking = this.taking.then(() => this.take())), SNAPSHOT_INTERVAL_MS);
  }

  static async start(): Promise<RestoredSnapshot> {
    const folder = await mkdtemp(join(tmpdir(), 'broomwagon-set-back-'));
    const redis = await startRedis({ folder, configuration: 'appendonly no' });
    const client = new Redis(redis.url);
    client.on('error', () => undefined);
    const history = new RestoredSnapshot(redis, client, folder);
    await history.take();
    return history;
  }

  get url(): string {
    return this.redis.url;
  }

  async setBack(lostMs: number): Promise<number> {
    const setBackMs = nowMs();
    this.away = true;
    await this.taking;
    await this.redis.kill();
    const { atMs, file } = findSample(this.snapshots, setBackMs - lostMs);
    await copyFile(file, join(this.folder, 'dump.rdb'));
    await this.redis.restart();
    this.away = false;
    this.snapshots = [];
    await this.take();
    return setBackMs - atMs;
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.away = true;
    await this.taking;
    this.client.disconnect();
    await this.redis.stop();
  }

  private async take(): Promise<void> {
    if (this.away) return;
    const atMs = nowMs();
    await this.client.save();
    // The next SAVE renames another file to this name: the link keeps this one.
    const file = join(this.folder, `snapshot-${++this.taken}.rdb`);
    await link(join(this.folder, 'dump.rdb'), file);
    this.snapshots.push({ atMs, file });
  }
}
