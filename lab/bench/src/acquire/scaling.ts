import { startRedis, waitUntil } from '@broomwagon/testing';
import { median, medianRatio } from '../arithmetic';
import type { BenchWorker } from '../generator/jobs';
import type { Progress } from '../progress';
import type { PoolState, Stage } from '../stage';
import { warmUp, type Effort } from './throughput';

const SERVER_COUNTS = [10, 100, 1_000, 10_000] as const;
const LEASE_COUNTS = [0, 10_000, 1_000_000] as const;
const SESSIONS = 100_000;
const SERVERS = 64;
/** Workers that hold the leases taken beforehand. */
const HOLDERS = 64;
const WINDOW = 512;

/** A pool of some size, and the measured cost of an acquire in it. */
export interface SizedPool {
  pool: string;
  label: string;
  workers: BenchWorker[];
  sessions: number;
  /** CPU time of replica and Redis for one acquire, microseconds; one value per round. */
  cpuMicroseconds: number[];
  perSecond: number[];
}

/** Cost of an acquire in pools of growing size, through one replica with a Redis of its own. */
export class Scaling {
  readonly pools: SizedPool[] = [];
  bytesPerLease = Number.NaN;
  bytesPerSession = Number.NaN;
  private processIds: number[] = [];

  private constructor(
    private readonly stage: Stage,
    private readonly state: PoolState,
    private readonly effort: Effort,
  ) {}

  static readonly poolCount = SERVER_COUNTS.length + LEASE_COUNTS.length + 2;

  static async prepare(stage: Stage, effort: Effort, progress: Progress): Promise<Scaling> {
    const redis = await startRedis();
    stage.onStop(() => redis.stop());
    const scaling = new Scaling(stage, stage.state(redis), effort);
    for (const count of LEASE_COUNTS) await scaling.addLeases(count, progress);
    await scaling.addSessions(progress);
    for (const count of SERVER_COUNTS) {
      progress.step(`preparing ${count} servers`);
      const workers = await scaling.state.fill(`servers-${count}`, count);
      scaling.add(`servers-${count}`, `${count.toLocaleString('en')} servers`, workers);
    }
    await scaling.quiet();
    const pools = scaling.pools.map(({ pool }) => pool);
    const replica = await stage.startApp('load-balancer', 'scaling', pools, redis);
    progress.step('warming up');
    const { pool, workers } = scaling.pools.find((sized) => sized.pool === 'leases-0')!;
    await warmUp(stage, pool, workers);
    scaling.processIds = [replica, ...(redis.pid ? [redis.pid] : [])];
    return scaling;
  }

  private add(pool: string, label: string, workers: BenchWorker[], sessions = 0): void {
    this.pools.push({ pool, label, workers, sessions, cpuMicroseconds: [], perSecond: [] });
  }

  private async addLeases(count: number, progress: Progress): Promise<void> {
    progress.step(`preparing ${count} leases`);
    const pool = `leases-${count}`;
    const workers = await this.state.fill(pool, SERVERS, HOLDERS);
    const before = await this.state.usedMemoryBytes();
    await this.state.hold(pool, workers, count);
    // The largest count, which is the last, is the most exact: tables grow in powers of two, and constants count least.
    if (count > 0) this.bytesPerLease = ((await this.state.usedMemoryBytes()) - before) / count;
    this.add(pool, `${count.toLocaleString('en')} live leases`, workers);
  }

  private async addSessions(progress: Progress): Promise<void> {
    progress.step(`preparing ${SESSIONS} sessions`);
    for (const count of [WINDOW, SESSIONS]) {
      const pool = `sessions-${count}`;
      const workers = await this.state.fill(pool, SERVERS);
      const before = await this.state.usedMemoryBytes();
      const held = await this.state.hold(pool, workers, count, true);
      await this.state.release(pool, held);
      await this.quiet();
      this.bytesPerSession = ((await this.state.usedMemoryBytes()) - before) / count;
      this.add(pool, `${count.toLocaleString('en')} sessions, each acquire of one`, workers, count);
    }
  }

  /** Waits until Redis has deleted the released leases and rewrites no file. */
  private async quiet(): Promise<void> {
    const { redis } = this.state;
    const idle = async () => {
      const rewrites = /aof_rewrite_in_progress:1/.test(await redis.info('persistence'));
      const expiring = /expires=([1-9]\d*)/.test(await redis.info('keyspace'));
      return !rewrites && !expiring;
    };
    await waitUntil(idle, { what: 'Redis to have nothing left to do', timeoutMs: 120_000 });
  }

  async run(progress: Progress): Promise<void> {
    const { rounds, warmUpMs, measureMs } = this.effort;
    for (let round = 0; round < rounds; round++) {
      for (const sized of this.pools) {
        progress.step(`round ${round + 1} of ${rounds}: ${sized.label}`);
        const { pool, workers, sessions } = sized;
        const result = await this.stage.generator.ask({
          kind: 'acquire',
          pool,
          workers,
          sessions,
          window: WINDOW,
          warmUpMs,
          measureMs,
          processIds: this.processIds,
        });
        const cpuSeconds = result.cpuSeconds.reduce((sum, seconds) => sum + seconds, 0);
        sized.cpuMicroseconds.push((cpuSeconds / result.completed) * 1_000_000);
        sized.perSecond.push(result.perSecond);
        await this.state.release(pool, result.heldAcquireIds);
      }
    }
  }

  /** Cost of an acquire in this pool, as a multiple of its cost in the other pool. */
  ratio(pool: string, other: string): number {
    const costs = (name: string) => this.pools.find((sized) => sized.pool === name)!.cpuMicroseconds;
    return medianRatio(costs(pool), costs(other));
  }

  /** The pool of the same kind that this pool is compared with. */
  findBaseline({ pool }: SizedPool): string {
    const kind = pool.split('-')[0];
    return this.pools.find((sized) => sized.pool.startsWith(`${kind}-`))!.pool;
  }

  medianCpuMicroseconds(sized: SizedPool): number {
    return median(sized.cpuMicroseconds);
  }
}
