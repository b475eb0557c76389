import { median, medianRatio } from '../arithmetic';
import { Build } from '../cost/build';
import type { BenchWorker, Job, JobResult, ListJob } from '../generator/jobs';
import type { Progress } from '../progress';
import { KEY_PREFIX, type PoolState, type Stage } from '../stage';

/** Number of rounds, and times of one measurement. */
export interface Effort {
  rounds: number;
  warmUpMs: number;
  measureMs: number;
}

const SERVERS = 64;
const WINDOW = 512;
const BURST = 2_048;
const REPLICAS = [1, 2, 3] as const;
const CONCURRENCIES = [1, 64, 512, 2_048] as const;
export const OPEN_RATES = [500, 2_000] as const;
/** An open loop needs more time for a p99. */
const OPEN_LOOP_FACTOR = 2;
/** Bursts need more time, so that some end even on a slow machine. */
const BURST_FACTOR = 4;
const ECHO_SUBJECT = 'bench.echo';
/** The pool that the other build serves. */
const AGAINST = 'against';

type RowName =
  | 'echo'
  | 'script'
  | 'raw'
  | 'raw-pairs'
  | 'acquire'
  | `pairs-${number}`
  | `replicas-${number}`
  | 'many'
  | `open-${number}`
  | 'acquire-against'
  | 'pairs-against';

/** Processes whose CPU time is read. */
const CPU_PROCESSES = ['replica', 'redis', 'generator', 'nats', 'echo'] as const;
export type CpuMicroseconds = Record<(typeof CPU_PROCESSES)[number], number>;

/** Rate and CPU time of this build, as multiples of the other build's. */
export type OverOtherBuild = Record<'acquire' | 'pairs', { rate: number; cpu: number }>;

/** One line of the table: every round of one load. */
export interface Row {
  name: RowName;
  label: string;
  job: Exclude<Job, ListJob>;
  results: JobResult[];
}

/** The rows of the table, and the numbers computed from them. */
export class Throughput {
  readonly rows: Row[] = [];
  /** Longest run of a script during bursts, milliseconds. */
  longestBurstScriptMs = 0;

  private constructor(
    private readonly stage: Stage,
    private readonly state: PoolState,
    private readonly effort: Effort,
  ) {}

  /** The state of the pool of another build, which has a Redis of its own. */
  private against?: PoolState;
  private againstProcessIds: number[] = [];

  /** Process ids of the replicas of each pool. */
  private readonly replicas = new Map<string, number[]>();

  /** Number of progress steps of `prepare`. */
  static readonly preparations = 1 + REPLICAS.length;
  static readonly rowCount = 4 + 1 + CONCURRENCIES.length + 2 + 1 + OPEN_RATES.length;
  static readonly rowsAgainst = 2;

  /**
   * Starts a raw echo, a raw handler, and one, two and three replicas, each with a pool of its own, and warms them up.
   *
   * @param against folder of another built checkout; one replica of it is measured too
   */
  static async prepare(stage: Stage, effort: Effort, progress: Progress, against?: string): Promise<Throughput> {
    const { nats, redis } = stage.services;
    const state = stage.state(redis);
    const throughput = new Throughput(stage, state, effort);
    const echo = stage.child<{ natsUrl: string; subject: string }, void>('raw/echo.main.js');
    await echo.ask({ natsUrl: nats.url, subject: ECHO_SUBJECT });
    await stage
      .child<object, void>('raw/handler.main.js')
      .ask({ natsUrl: nats.url, redisUrl: redis.url, keyPrefix: KEY_PREFIX, pool: 'raw' });
    // Each pool needs its own workers, since an epoch belongs to one pool.
    const workers = new Map([['raw', await state.fill('raw', SERVERS)]]);
    for (const replicas of REPLICAS) {
      const pool = `replicas-${replicas}`;
      workers.set(pool, await state.fill(pool, SERVERS));
      const processIds: number[] = [];
      for (let index = 1; index <= replicas; index++) {
        processIds.push(await stage.startApp('load-balancer', `${pool}.${index}`, [pool], redis));
      }
      throughput.replicas.set(pool, processIds);
    }
    if (against !== undefined) workers.set(AGAINST, await throughput.startAgainst(against));
    throughput.addRows(workers, throughput.replicas.get('replicas-1')![0]!, echo.processId);
    for (const pool of ['raw', ...throughput.replicas.keys()]) {
      progress.step(`warming up ${pool}`);
      throughput.letRun(pool);
      await warmUp(stage, pool, workers.get(pool)!);
    }
    return throughput;
  }

  /** Starts one replica of another build. @returns the workers of its pool */
  private async startAgainst(checkout: string): Promise<BenchWorker[]> {
    const { server, client } = await this.stage.startRedis();
    const build = new Build(checkout, client, KEY_PREFIX);
    const workers = await build.fill(AGAINST, SERVERS, {});
    this.against = this.stage.state(server, build.leases);
    const replica = await this.stage.startApp('load-balancer', AGAINST, [AGAINST], server, {}, build.folder);
    this.replicas.set(AGAINST, [replica]);
    this.againstProcessIds = [replica, server.pid ?? 0];
    return workers;
  }

  private addRows(workers: ReadonlyMap<string, BenchWorker[]>, replica: number, echo: number): void {
    const { warmUpMs, measureMs } = this.effort;
    const { nats, redis } = this.stage.services;
    const add = (name: RowName, label: string, job: Exclude<Job, ListJob>) =>
      this.rows.push({ name, label, job, results: [] });
    // Same order as CPU_PROCESSES.
    const processIds = [replica, redis.pid ?? 0, this.stage.generator.processId, nats.pid ?? 0, echo];
    const buildLoad = (pool: string) => ({ pool, workers: workers.get(pool)!, warmUpMs, measureMs, processIds });
    const raw = buildLoad('raw');
    const one = buildLoad('replicas-1');
    add('echo', `raw nats.js echo, window ${WINDOW}`, { ...raw, kind: 'echo', subject: ECHO_SUBJECT, window: WINDOW });
    add('script', `raw FCALL of acquire, window ${WINDOW}`, {
      ...raw,
      kind: 'script',
      window: WINDOW,
      redisUrl: redis.url,
      keyPrefix: KEY_PREFIX,
    });
    add('raw', `raw handler, acquire, window ${WINDOW}`, { ...raw, kind: 'acquire', window: WINDOW });
    add('raw-pairs', `raw handler, acquire+release, window ${WINDOW}`, { ...raw, kind: 'pairs', window: WINDOW });
    add('acquire', `acquire, window ${WINDOW}`, { ...one, kind: 'acquire', window: WINDOW });
    for (const window of CONCURRENCIES) {
      add(`pairs-${window}`, `acquire+release, window ${window}`, { ...one, kind: 'pairs', window });
    }
    for (const replicas of REPLICAS.slice(1)) {
      const pool = `replicas-${replicas}`;
      const label = `acquire+release, window ${WINDOW}, ${replicas} replicas`;
      add(`replicas-${replicas}`, label, { ...buildLoad(pool), kind: 'pairs', window: WINDOW });
    }
    const burst: Job = { ...one, kind: 'many', count: BURST, measureMs: measureMs * BURST_FACTOR };
    add('many', `acquire-many of ${BURST}`, burst);
    for (const ratePerSecond of OPEN_RATES) {
      const job: Job = { ...one, kind: 'open', ratePerSecond, measureMs: measureMs * OPEN_LOOP_FACTOR };
      add(`open-${ratePerSecond}`, `acquire+release, open loop, ${ratePerSecond}/s`, job);
    }
    if (this.against) {
      const load = { ...buildLoad(AGAINST), window: WINDOW, processIds: this.againstProcessIds };
      add('acquire-against', `acquire, window ${WINDOW}, the other build`, { ...load, kind: 'acquire' });
      add('pairs-against', `acquire+release, window ${WINDOW}, the other build`, { ...load, kind: 'pairs' });
    }
  }

  /** Measures all rows in turn, in several rounds, so that a slow minute of the machine affects all of them. */
  async run(progress: Progress): Promise<void> {
    for (let round = 0; round < this.effort.rounds; round++) {
      for (const row of this.rows) {
        progress.step(`round ${round + 1} of ${this.effort.rounds}: ${row.label}`);
        this.letRun(row.job.pool);
        const isBurst = row.name === 'many';
        if (isBurst) await this.watchScripts();
        const result = await this.stage.generator.ask(row.job);
        if (isBurst) await this.noteLongestScript();
        row.results.push(result);
        const state = row.job.pool === AGAINST ? this.against! : this.state;
        await state.release(row.job.pool, result.heldAcquireIds);
      }
    }
  }

  /** Stops the replicas of all other pools: the upkeep of six idle replicas takes a quarter of a core. */
  letRun(pool: string | undefined): void {
    for (const [other, processIds] of this.replicas) {
      for (const processId of processIds) process.kill(processId, other === pool ? 'SIGCONT' : 'SIGSTOP');
    }
  }

  /** This build over the other one, each with one replica, its Redis and 512 requests in flight. */
  overOtherBuild(): OverOtherBuild | undefined {
    if (!this.against) return undefined;
    const over = (name: RowName, other: RowName) => ({
      rate: this.ratio(name, other),
      cpu: medianRatio(this.serverCpu(name), this.serverCpu(other)),
    });
    return { acquire: over('acquire', 'acquire-against'), pairs: over('pairs-512', 'pairs-against') };
  }

  /** CPU seconds of replica and Redis for one request, by round. */
  private serverCpu(name: RowName): number[] {
    return this.row(name).results.map(({ cpuSeconds: [replica, redis], completed }) => (replica! + redis!) / completed);
  }

  row(name: RowName): Row {
    return this.rows.find((row) => row.name === name)!;
  }

  /** Rate of this row, as a multiple of the other row's. */
  ratio(name: RowName, other: RowName): number {
    return medianRatio(listRates(this.row(name)), listRates(this.row(other)));
  }

  /** CPU time of each process for one request of this row, microseconds. */
  cpuMicroseconds(name: RowName): CpuMicroseconds {
    const { results } = this.row(name);
    const of = (index: number) =>
      median(results.map(({ cpuSeconds, completed }) => ((cpuSeconds[index] ?? Number.NaN) / completed) * 1_000_000));
    return Object.fromEntries(CPU_PROCESSES.map((process, index) => [process, of(index)])) as CpuMicroseconds;
  }

  private async watchScripts(): Promise<void> {
    await this.state.redis.config('SET', 'slowlog-log-slower-than', 500);
    await this.state.redis.slowlog('RESET');
  }

  private async noteLongestScript(): Promise<void> {
    const entries = (await this.state.redis.slowlog('GET', 1_024)) as [number, number, number, ...unknown[]][];
    for (const [, , microseconds] of entries) {
      this.longestBurstScriptMs = Math.max(this.longestBurstScriptMs, microseconds / 1_000);
    }
    await this.state.redis.config('SET', 'slowlog-log-slower-than', -1);
  }
}

/** Long enough for V8 to compile all code that runs often, as in a process that has served for days. */
const WARM_UP_MS = 4_000;

/** Puts load on the servers of this pool without recording it. */
export async function warmUp(stage: Stage, pool: string, workers: readonly BenchWorker[]): Promise<void> {
  const job: Job = { kind: 'pairs', pool, workers, window: WINDOW, warmUpMs: 0, measureMs: WARM_UP_MS };
  await stage.generator.ask(job);
}

export function listRates(row: Row): number[] {
  return row.results.map(({ perSecond }) => perSecond);
}
