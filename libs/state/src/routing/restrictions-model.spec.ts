import { ROUTING_POLICIES, type EngineFeature, type Labels } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { afterAll, expect, inject, it } from 'vitest';
import { closeStores, Pair, pools, replayed, servers, leases, workers } from './routing-model.fixture';

/** Number of random sequences. */
const RUNS = 5 * inject('runsFactor');
const SERVERS = 60;

afterAll(closeStores);

const server = fc.record({
  maxInflight: fc.integer({ min: 1, max: 3 }),
  weightVersion: fc.constantFrom(6, 7, 8),
  labels: fc.option(fc.constantFrom<Labels>({ zone: 'a' }, { zone: 'b' }, { zone: 'a', gpu: 'x' }), { nil: undefined }),
  lacks: fc.subarray<EngineFeature>(['tokenIdsIn', 'logprobs']),
  models: fc.option(fc.constantFrom(['a'], ['a', 'lora'], ['b'], ['b', '*']), { nil: undefined, freq: 6 }),
});
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const wanted = fc.record({
  weightVersion: maybe(fc.constantFrom(6, 7, 9)),
  minWeightVersion: maybe(fc.constantFrom(7, 8)),
  maxWeightLag: maybe(fc.constantFrom(0, 1)),
  labels: maybe(fc.constantFrom<Labels>({ zone: 'a' }, { gpu: 'x', zone: 'a' }, { zone: 'c' })),
  needs: maybe(fc.subarray<EngineFeature>(['tokenIdsIn', 'logprobs'], { minLength: 1 })),
  model: maybe(fc.constantFrom('a', 'b', 'a:lora', 'other')),
  excludeServers: maybe(fc.subarray(Array.from({ length: 8 }, (_, n) => `s${n}`))),
  sessionId: maybe(fc.constantFrom('x', 'y')),
  groupId: maybe(fc.constantFrom('g1', 'g2')),
  requestId: fc.constantFrom('j/g1/0', 'j/g1/1', 'j/g2/0'),
});

it('finds the server that the reference model finds among many, and refuses the same acquires', async () => {
  const plan = fc.record({
    policy: fc.constantFrom(...ROUTING_POLICIES),
    fleet: fc.array(server, { minLength: SERVERS, maxLength: SERVERS }),
    // Batches repeat the same requests, like batches of the coalescer.
    batches: fc.array(
      fc.record({ requests: fc.array(wanted, { minLength: 1, maxLength: 3 }), times: fc.constantFrom(1, 4) }),
      {
        minLength: 15,
        maxLength: 30,
      },
    ),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ policy, fleet, batches }) => {
      const pair = new Pair();
      const { revision } = await pools.configure(pair.pool, { policy });
      pair.model.configure({ policy });
      await pools.finish(pair.pool, revision);
      const registration = { workerId: 'w', registrationId: 'one', ttlMs: 3_600_000 };
      pair.begin((await workers.register(pair.pool, registration)).workerEpoch);
      const workerEpoch = pair.model.registerWorker('w', 'one');
      for (const [n, { labels, lacks, models, ...one }] of fleet.entries()) {
        const common = { serverId: `s${n}`, instanceId: 'i', weight: 1, ...one };
        const { epoch } = await servers.register(pair.pool, {
          ...common,
          labels,
          lacks: lacks.join(','),
          models,
          endpoint: 'http://127.0.0.1:1',
          dialect: 'vllm',
          probe: false,
        });
        pair.begin(epoch);
        pair.model.registerServer({ ...common, labels, lacks, models });
      }
      let sequence = 0;
      for (const { requests, times } of batches) {
        const items = Array.from({ length: times }, () => requests)
          .flat()
          .map((one) => ({ acquireId: `a${sequence++}`, workerId: 'w', workerEpoch, ...one }));
        const expected = items.map((item) => pair.model.acquire({ ...item, waits: false }));
        const { results } = await leases.acquire(pair.pool, items);
        expect(results.map(replayed)).toEqual(expected);
        const moved = items[0]!.acquireId;
        expect(pair.model.release(moved).answers).toEqual([]);
        await leases.release(pair.pool, [{ acquireId: moved }]);
        const changed = { serverId: `s${sequence % SERVERS}`, weightVersion: 8 };
        Object.assign(pair.model.servers.get(changed.serverId)!, changed);
        await servers.update(pair.pool, changed);
      }
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
});
