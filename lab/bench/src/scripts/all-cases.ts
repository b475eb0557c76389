import { LIMITS } from '@broomwagon/contracts';
import {
  DeletionStore,
  JobStore,
  openPayloadStore,
  PoolAudit,
  PoolDirectory,
  type RedisClient,
  RequestStore,
  RoundStore,
} from '@broomwagon/state';
import { transition } from '../../../../libs/state/src/library/function-runner';
import { listPrimaries } from '../../../../libs/state/src/redis-cluster';
import { KEY_PREFIX, type PoolState } from '../stage';
import { MoveCases } from './move-cases';
import { RoundCases } from './round-cases';
import { RoutingCases } from './routing-cases';
import { StoredCases } from './stored-cases';
import { TimedRunner, type Timing } from './timed-runner';

/** Number of repeats with audits, since audits of the large pool take most of the time. */
const MAX_AUDITS = 2;

/** Most leases that an audit adds up in one call, see libs/state/src/audit/views.lua. */
const LEASES_OF_ONE_SERVER = 500;

/** Sizes of all inputs without a limit, and the number of repeats. */
export interface CaseSizes {
  servers: number;
  leases: number;
  /** Groups and samples of rounds. */
  shapes: readonly (readonly [groups: number, samples: number])[];
  jobs: number;
  /** Number of running requests that are moved, aborted and lost. */
  running: number;
  repeats: number;
}

/** Runs every script with the largest inputs that its limits allow. @returns the times of all calls */
export async function timeAllScripts(state: PoolState, redis: RedisClient, sizes: CaseSizes): Promise<Timing[]> {
  const runner = new TimedRunner(redis, KEY_PREFIX);
  const names = { rounds: 'rounds', routing: 'routing', moves: 'moves', stored: 'stored', counted: 'counted' };
  const [worker] = await state.fill(names.rounds, 0, 1);
  const rounds = new RoundCases(runner, names.rounds, worker!);
  const routing = new RoutingCases(runner, state, names.routing);
  const stored = new StoredCases(runner, redis, names.stored);
  const moves = new MoveCases(runner, names.moves);
  await routing.fill(sizes.servers, sizes.leases);
  const counters = await state.fill(names.counted, 1);
  await state.hold(names.counted, counters, Math.min(sizes.leases, LEASES_OF_ONE_SERVER), true);
  for (let repeat = 0; repeat < sizes.repeats; repeat++) {
    await rounds.run(sizes.shapes, sizes.jobs);
    await routing.run();
    await stored.run();
    const [mover] = await state.fill(names.moves, 64, 1);
    const moved = new RoundCases(runner, names.moves, mover!);
    await moves.run(mover!, await moved.openAndClaim(`moved-${repeat}`, sizes.running, 1));
    await moved.openAndClaim(`lost-${repeat}`, sizes.running, sizes.shapes[0]![1]);
    await moves.endWorker(mover!);
    await jobCases(runner, redis, names.rounds, sizes.jobs, repeat);
    // An audit reads each lease and server several times.
    if (repeat < MAX_AUDITS) await audits(runner, redis, [names.moves, names.routing]);
    await recounts(runner, redis, names.counted);
  }
  return [...runner.timings.values()];
}

/** Measures listings of very many jobs, the expiry of rounds and claims, and the deletion of a job. */
async function jobCases(
  runner: TimedRunner,
  redis: RedisClient,
  pool: string,
  jobs: number,
  repeat: number,
): Promise<void> {
  const root = runner.rootKey(pool);
  for (let job = 0; job < jobs; job++) await redis.sadd(`${root}:jobs`, `many-${job}`);
  const rounds = new RoundStore(runner);
  const payloads = await openPayloadStore({ driver: 'redis', url: toRedisUrl(redis), dir: '', keyPrefix: KEY_PREFIX });
  const deletions = new DeletionStore(redis, runner, payloads, new PoolDirectory(redis, KEY_PREFIX));
  await runner.measure('many jobs', async () => {
    await rounds.allJobs(pool, false);
    const idle = [];
    for await (const { jobs: page } of rounds.pages('listJobs', pool, { idleBeforeMs: 1 })) idle.push(...page);
    await new JobStore(runner).configure(pool, { job: 'many-0', weight: 1, maxInFlight: LIMITS.claimsPerCall });
    await rounds.expire(pool);
    await new RequestStore(runner).expireClaims(pool);
    await deletions.deleteJob(pool, `job-1-${repeat + 1}`, true);
  });
  await payloads.close();
  for (let job = 0; job < jobs; job++) await redis.srem(`${root}:jobs`, `many-${job}`);
}

function toRedisUrl(redis: RedisClient): string {
  const { host, port } = listPrimaries(redis)[0]!.options;
  return `redis://${host}:${port}`;
}

/** Measures audits of pools with the remains of the other cases. */
async function audits(runner: TimedRunner, redis: RedisClient, pools: readonly string[]): Promise<void> {
  for (const pool of pools) {
    await runner.measure(`audit of ${pool}`, async () => void (await new PoolAudit(redis, runner).run(pool)));
  }
}

/** Measures sums over as many leases as one script adds up, and pages of a recount. */
async function recounts(runner: TimedRunner, redis: RedisClient, pool: string): Promise<void> {
  const names = Array.from({ length: LIMITS.page }, (_, index) => `session-${index}`);
  await runner.measure('as many leases as are counted at once', async () => {
    await new PoolAudit(redis, runner).run(pool);
    // Each item compares the values that it has read, and writes.
    const seen = [[['HGET', 'meta', 'absent'], false]];
    const items = names.map((name) => ({ seen, steps: [['call', 'HSET', 'meta', name, '1']] }));
    await runner.run(transition<object, object>('audit/mend'), pool, { items });
    const marks = { jobs: names, generation: 'none', isLast: false };
    await runner.run(transition<object, object>('audit/mark-counts'), pool, marks);
    const requestIds = names.map((name) => `job/${name}/0`);
    for (const requestId of requestIds)
      await redis.hset(`${runner.rootKey(pool)}:request:${requestId}`, 'state', 'pending');
    const counted = { job: 'job', id: 'recount', begins: true, requestIds };
    await runner.run(transition<object, object>('audit/recount'), pool, counted);
    const steps = names.map((name) => ({ serverId: name, endpoint: name, dialect: 'vllm', syncId: 'none' }));
    await runner.run(transition<object, object>('weights/engine-known'), pool, { steps });
  });
}
