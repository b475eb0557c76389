import { type Epoch, type PoolSettings, ROUTING_POLICIES } from '@broomwagon/contracts';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import fc from 'fast-check';
import { afterAll, expect, inject, it } from 'vitest';
import { connectRedis } from '../redis';
import { FunctionRunner } from '../library/function-runner';
import { PoolStore } from '../pools/pool.store';
import { LeaseStore, type AcquireEntry, type ReleaseEntry } from './lease.store';
import { WorkerStore } from '../workers/worker.store';
import { ServerStore } from '../servers/server.store';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new FunctionRunner(redis, prefix);
const leases = new LeaseStore(runner);
const workers = new WorkerStore(runner);
const pools = new PoolStore(runner);
const servers = new ServerStore(runner);
let runs = 0;

afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

type RoutingRequest = Omit<AcquireEntry, 'workerEpoch'>;
interface Case {
  settings: PoolSettings;
  capacities: number[];
  batches: { acquires: RoutingRequest[]; releases: number[] }[];
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 3 });
const wanted: fc.Arbitrary<RoutingRequest> = fc.record({
  // Few ids, so that some are repeated in one script.
  acquireId: fc.integer({ min: 0, max: 60 }).map((n) => `a${n}`),
  requestId: fc.constantFrom('j/g1/0', 'j/g2/0'),
  workerId: fc.constantFrom('w1', 'w2'),
  sessionId: maybe(fc.constantFrom('x', 'y', 'z')),
  groupId: maybe(fc.constantFrom('g1', 'g2')),
  contextTokens: maybe(fc.constantFrom(100, 3_000)),
  weightVersion: fc.option(fc.constantFrom(0, 1), { nil: undefined, freq: 9 }),
});
const someCase: fc.Arbitrary<Case> = fc.record({
  settings: fc.record({
    policy: fc.constantFrom(...ROUTING_POLICIES),
    groupPlacement: fc.constantFrom('group-spread', 'group-affinity'),
  }),
  capacities: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 14 }),
  batches: fc.array(
    fc.record({
      acquires: fc.array(wanted, { minLength: 1, maxLength: 48 }),
      releases: fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 48 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
}) as fc.Arbitrary<Case>;

/** Runs the case in a new pool with `perScript` items in each script. @returns all answers, and state left in Redis */
async function outcome(test: Case, perScript: number): Promise<unknown> {
  const pool = `batches-${runs++}`;
  const { version } = await pools.configure(pool, test.settings);
  await pools.finish(pool, version);
  // The epochs are random, so compared values must not contain them.
  const serverEpochs: Epoch[] = [];
  for (const [index, maxInflight] of test.capacities.entries()) {
    const { epoch } = await servers.register(pool, {
      serverId: `s${index}`,
      instanceId: 'i',
      endpoint: 'http://127.0.0.1:1',
      dialect: 'vllm',
      probe: false,
      maxInflight,
      weight: 1 + (index % 2),
      weightVersion: index % 3 === 0 ? 1 : 0,
    });
    serverEpochs.push(epoch);
  }
  await servers.rescore(pool, {});
  const workerEpochs: Record<string, Epoch> = {};
  for (const workerId of ['w1', 'w2']) {
    const { workerEpoch } = await workers.register(pool, { workerId, registrationId: 'r', ttlMs: 3_600_000 });
    workerEpochs[workerId] = workerEpoch;
  }
  const answers: unknown[] = [];
  for (const { acquires, releases } of test.batches) {
    for (const items of splitPages(acquires, perScript)) {
      answers.push(
        ...(
          await leases.acquire(
            pool,
            items.map((item) => ({ ...item, workerEpoch: workerEpochs[item.workerId]! })),
          )
        ).results,
      );
    }
    for (const items of splitPages(releases, perScript)) {
      const entries: ReleaseEntry[] = items.map((n) => ({ acquireId: `a${n}` }));
      answers.push(...(await leases.release(pool, entries)).results);
    }
  }
  return { answers: answers.map(withoutSnapshot), ...(await leftIn(runner.rootKey(pool), serverEpochs, workerEpochs)) };
}

const splitPages = <T>(all: readonly T[], size: number) =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, page) => all.slice(page * size, (page + 1) * size));

function withoutSnapshot(answer: unknown): unknown {
  const { snapshot: _, ...rest } = answer as { snapshot?: unknown };
  return rest;
}

async function leftIn(root: string, serverEpochs: readonly Epoch[], workerEpochs: Record<string, Epoch>) {
  const sets = [
    ...serverEpochs.map((epoch, index) => `${root}:server-leases:s${index}:${epoch}`),
    ...['w1', 'w2'].map((id) => `${root}:worker-leases:${id}:${workerEpochs[id]}`),
  ];
  const counts = async (name: string) =>
    Object.entries(await redis.hgetall(`${root}:servers:${name}`))
      .map(([owner, count]) => [owner.split(':')[0], count])
      .sort();
  return {
    order: await redis.zrange(`${root}:eligible`, '0', '-1', 'WITHSCORES'),
    leases: (await redis.hkeys(`${root}:leases`)).map(String).sort(),
    sets: await Promise.all(sets.map(async (set) => (await redis.smembers(set)).map(String).sort())),
    tokens: await counts('tokens'),
    sessions: await counts('sessions'),
    digests: await Promise.all(['w1', 'w2'].map((id) => redis.hget(`${root}:worker:${id}`, 'leaseDigest'))),
  };
}

it('gives many acquires and releases in one script the same results as one script for each', async () => {
  await fc.assert(
    fc.asyncProperty(someCase, async (test) => {
      expect(await outcome(test, 128)).toEqual(await outcome(test, 1));
    }),
    { numRuns: 60 * inject('runsFactor') },
  );
});
