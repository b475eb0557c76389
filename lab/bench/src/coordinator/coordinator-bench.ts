import { cpus } from 'node:os';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { median, medianRatio, significant } from '../arithmetic';
import { measurePayloads, type PayloadReport } from '../payload/payload-bench';
import type { BenchWorker, JobResult } from '../generator/jobs';
import { Progress } from '../progress';
import type { PoolState, Stage } from '../stage';
import { AbortCounter } from './abort-counter';
import { formatReport, IN_FLIGHT, ROWS, type CoordinatorReport, type RowName } from './coordinator-report';
import { LongQueue } from './long-queue';
import { completions, RoundFlow, WINDOW, type HeldClaim } from './round-flow';
import { ScriptFlow } from './script-flow';

const ECHO_SUBJECT = 'bench.echo';
const POOLS = { rounds: 'rounds', large: 'large', fanOut: 'fan-out', queues: 'queues', scripts: 'raw-scripts' };
/** A round of 128 needed groups of 16; another 128 groups are cut. */
const SMALL = { neededGroups: 128, groups: 256, samples: 16 };
const FAN_OUT = { neededGroups: 1, groups: IN_FLIGHT / 16 + 1, samples: 16 };
const QUEUES = [1_000, 1_000_000] as const;

/** Numbers of repeats, and groups of the large round. */
const FULL = { rounds: 5, payloadRounds: 5, fanOuts: 3, steps: 9, largeGroups: 8_192 };
const QUICK = { rounds: 3, payloadRounds: 3, fanOuts: 1, steps: 5, largeGroups: 1_024 };

/** `bench coordinator`: cost of rounds through NATS, beside raw limits measured in the same minutes. */
export async function benchCoordinator(
  stage: Stage,
  isQuick: boolean,
): Promise<{ report: CoordinatorReport; text: string }> {
  await stage.start((line) => console.error(line));
  const effort = isQuick ? QUICK : FULL;
  const bench = await CoordinatorBench.prepare(stage, effort);
  return bench.run();
}

class CoordinatorBench {
  /** Requests per second, one value per round. */
  private readonly rates = new Map<RowName, number[]>();
  /** CPU microseconds of the coordinator and of Redis for one request, one pair per round. */
  private readonly cpu = new Map<RowName, [number, number][]>();
  private readonly fanOutsMs: number[] = [];
  private readonly queues: LongQueue[] = [];
  private large!: CoordinatorReport['large'];

  private constructor(
    private readonly stage: Stage,
    private readonly effort: typeof FULL,
    private readonly state: PoolState,
    private readonly client: TypedClient,
    private readonly workers: Map<string, BenchWorker[]>,
    private readonly processIds: readonly number[],
  ) {}

  static async prepare(stage: Stage, effort: typeof FULL): Promise<CoordinatorBench> {
    const { nats, redis } = stage.services;
    const state = stage.state(redis);
    const workers = new Map<string, BenchWorker[]>();
    for (const pool of Object.values(POOLS)) workers.set(pool, await state.fill(pool, 0, 64));
    await stage
      .child<{ natsUrl: string; subject: string }, void>('raw/echo.main.js')
      .ask({ natsUrl: nats.url, subject: ECHO_SUBJECT });
    // No service serves the pool of the raw scripts.
    const { scripts: _, ...served } = POOLS;
    const coordinator = await stage.startApp('trainer-coordinator', 'coordinator', Object.values(served), redis);
    const connection = await connectNats({ url: nats.url });
    stage.onStop(() => connection.close());
    const client = new TypedClient(new MessagingClient(connection));
    const processIds = [coordinator, ...(redis.pid ? [redis.pid] : [])];
    return new CoordinatorBench(stage, effort, state, client, workers, processIds);
  }

  async run(): Promise<{ report: CoordinatorReport; text: string }> {
    const { rounds, fanOuts, steps, payloadRounds } = this.effort;
    const progress = new Progress(rounds + 1 + fanOuts + 1 + QUEUES.length + steps);
    let payload: PayloadReport;
    try {
      progress.step('warming up');
      await this.measureSmall('warm-up');
      this.rates.clear();
      this.cpu.clear();
      for (let round = 0; round < rounds; round++) {
        progress.step(`round ${round + 1} of ${rounds} of 128 x 16`);
        await this.measureSmall(`small-${round}`);
      }
      for (let turn = 0; turn < fanOuts; turn++) {
        progress.step(`fan-out ${turn + 1} of ${fanOuts}`);
        await this.measureFanOut(`fan-out-${turn}`);
      }
      progress.step(`a round of ${this.effort.largeGroups} x 16`);
      await this.measureLarge();
      for (const groups of QUEUES) {
        progress.step(`preparing a queue of ${groups}`);
        const { redis } = this.state;
        const queue = new LongQueue(this.client, redis, POOLS.queues, this.workers.get(POOLS.queues)![0]!, groups);
        await queue.fill();
        await queue.measure();
        queue.forget();
        this.queues.push(queue);
      }
      for (let step = 0; step < steps; step++) {
        progress.step(`step ${step + 1} of ${steps} of long queues`);
        const order = step % 2 === 0 ? this.queues : this.queues.toReversed();
        for (const queue of order) await queue.measure();
      }
    } finally {
      progress.end();
    }
    ({ report: payload } = await measurePayloads(this.stage, payloadRounds));
    const report = this.report(payload);
    return { report, text: formatReport(report) };
  }

  /** Measures every row once, all within a few seconds. */
  private async measureSmall(job: string): Promise<void> {
    const flow = this.flow(POOLS.rounds, job, SMALL);
    const requests = SMALL.neededGroups * SMALL.samples;
    const raw = new ScriptFlow(this.state.redis, POOLS.scripts, job, this.workers.get(POOLS.scripts)![0]!, SMALL);
    await flow.open();
    this.rate('submit', await flow.submit(), 2 * requests);
    const first = await flow.claim(requests, 1);
    this.rate('claim', first.result);
    const second = await flow.claim(requests, 64);
    this.rate('claim 64', second.result, requests);
    this.rate('echo', await this.echo(first.held));
    await flow.store(first.held);
    const aborts = this.aborts(POOLS.rounds).expect(second.held.length);
    this.rate('complete', await flow.complete(first.held));
    const completedAtMs = performance.now();
    this.add('cut', second.held.length / (((await aborts) - completedAtMs) / 1_000));
    this.rate('requeue', await flow.requeue(second.held));
    await flow.close();
    const { claimPerSecond, completePerSecond } = await raw.run();
    this.add('script claim', claimPerSecond);
    this.add('script complete', completePerSecond);
  }

  /** Measures the time from sending the completion that completes the round to the last abort that a worker gets. */
  private async measureFanOut(job: string): Promise<void> {
    const flow = this.flow(POOLS.fanOut, job, FAN_OUT);
    await flow.open();
    await flow.submit();
    const { held } = await flow.claim(FAN_OUT.groups * FAN_OUT.samples, 64);
    const needed = held.filter(({ claim }) => claim.groupId === 'group-0');
    const others = held.filter(({ claim }) => claim.groupId !== 'group-0');
    await flow.store(needed);
    await flow.complete(needed.slice(1));
    const aborts = this.aborts(POOLS.fanOut).expect(others.length);
    const startedAtMs = performance.now();
    const completed = flow.complete(needed.slice(0, 1));
    this.fanOutsMs.push((await aborts) - startedAtMs);
    await completed;
    await flow.requeue(others);
    await flow.close();
  }

  private async measureLarge(): Promise<void> {
    const { largeGroups: groups } = this.effort;
    const { samples } = SMALL;
    const requests = groups * samples;
    const flow = this.flow(POOLS.large, 'large', { neededGroups: groups, groups, samples });
    const startedAtMs = performance.now();
    await flow.open();
    const submitted = await flow.submit();
    const { result: claimed, held } = await flow.claim(requests, 64);
    const storingAtMs = performance.now();
    await flow.store(held);
    const storingMs = performance.now() - storingAtMs;
    const completed = await flow.complete(held);
    const seconds = (performance.now() - startedAtMs - storingMs) / 1_000;
    await flow.close();
    const perSecond = {
      submit: Math.round(requests / submitted.seconds),
      'claim 64': Math.round(requests / claimed.seconds),
      complete: Math.round(completed.perSecond),
    };
    const overSmall = Object.fromEntries(
      Object.entries(perSecond).map(([name, value]) => [name, significant(value / this.median(name as RowName), 3)]),
    );
    this.large = { groups, samples, seconds: significant(seconds), perSecond, overSmall };
  }

  private echo(held: readonly HeldClaim[]): Promise<JobResult> {
    const bodies = completions('echo', held);
    return this.stage.generator.ask({
      kind: 'list',
      subject: ECHO_SUBJECT,
      bodies: [...bodies, ...bodies],
      window: WINDOW,
    });
  }

  private readonly counters = new Map<string, AbortCounter>();
  private aborts(pool: string): AbortCounter {
    const counter = this.counters.get(pool) ?? new AbortCounter(this.client.messaging.connection.nats, pool);
    this.counters.set(pool, counter);
    return counter;
  }

  private flow(pool: string, job: string, shape: typeof SMALL): RoundFlow {
    return new RoundFlow(this.stage, this.client, pool, job, this.workers.get(pool)!, shape, this.processIds);
  }

  private rate(row: RowName, { seconds, completed, cpuSeconds }: JobResult, requests = completed): void {
    this.add(row, requests / seconds);
    if (cpuSeconds.length === 0) return;
    const [coordinator, redis] = cpuSeconds.map((value) => (value / requests) * 1_000_000);
    this.cpu.set(row, [...(this.cpu.get(row) ?? []), [coordinator!, redis ?? Number.NaN]]);
  }

  private add(row: RowName, perSecond: number): void {
    this.rates.set(row, [...(this.rates.get(row) ?? []), perSecond]);
  }

  private median(row: RowName): number {
    return median(this.rates.get(row)!);
  }

  private computeCpu(row: RowName): { coordinatorMicroseconds?: number; redisMicroseconds?: number } {
    const values = this.cpu.get(row);
    if (!values) return {};
    const [coordinator, redis] = [0, 1].map((process) =>
      significant(median(values.map((value) => value[process]!)), 3),
    );
    return { coordinatorMicroseconds: coordinator, redisMicroseconds: redis };
  }

  private report(payload: PayloadReport): CoordinatorReport {
    const ratio = (row: RowName, other: RowName) =>
      significant(medianRatio(this.rates.get(row)!, this.rates.get(other)!), 3);
    const [small, large] = this.queues;
    return {
      measuredAt: new Date().toISOString(),
      machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`,
      rounds: this.effort.rounds,
      ratios: {
        claimOverEcho: ratio('claim', 'echo'),
        completeOverEcho: ratio('complete', 'echo'),
        claimOverScript: ratio('claim', 'script claim'),
        completeOverScript: ratio('complete', 'script complete'),
        requeue10MBOver1kB: payload.requeue10MBOver1kB,
        complete10MBOver1kB: payload.complete10MBOver1kB,
        queue1000000Over1000: significant(large!.over(small!), 3),
      },
      cutFanoutMs: significant(median(this.fanOutsMs)),
      rows: (Object.keys(ROWS) as RowName[]).map((name) => ({
        name,
        label: ROWS[name],
        perSecond: Math.round(this.median(name)),
        ...this.computeCpu(name),
      })),
      large: this.large,
      queues: this.queues.map((queue) => ({
        groups: queue.groups,
        operations: queue.computeCosts().map((cost) => ({ ...cost, microseconds: significant(cost.microseconds) })),
      })),
      payload,
    };
  }
}
