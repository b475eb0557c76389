import {
  GROUP_PLACEMENTS,
  ROUTING_POLICIES,
  type BroomwagonError,
  type EngineFeature,
  type Labels,
} from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { afterAll, expect, it, vi } from 'vitest';
import { closeStores, Pair, pools, replayed, replays, servers, store } from './routing-model.fixture';

/** Sequences in one run of this test; `MODEL_RUNS=1000` looks deeper. */
const RUNS = Number(process.env.MODEL_RUNS ?? 100);
vi.setConfig({ testTimeout: 60_000 + RUNS * 1_000 });

afterAll(closeStores);
/** Transfers that moved a lease so far, repeats included. */
let transfers = 0;

type Command = fc.AsyncCommand<object, Pair>;
function command(name: string, run: (pair: Pair) => Promise<void>): Command {
  return {
    check: () => true,
    async run(_, pair) {
      await run(pair);
      await pair.compareBooks();
    },
    toString: () => name,
  };
}

/** Undefined nine times of ten. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const serverId = fc.constantFrom('s1', 's2', 's3', 's4');
const workerId = fc.constantFrom('w:1', 'w:2');
const acquireId = fc.integer({ min: 1, max: 40 }).map((n) => `a${n}`);

const acquire = fc
  .record({
    acquireId,
    workerId,
    stale: fc.integer({ min: 0, max: 40 }).map((n) => n === 0),
    sessionId: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
    priority: fc.option(fc.constantFrom(2, 5, 9), { nil: undefined }),
    weightVersion: rarely(fc.constantFrom(0, 1)),
    waits: fc.boolean(),
    requestId: fc.constantFrom('j/g1/0', 'j/g1/1', 'j/g2/0'),
    groupId: fc.option(fc.constantFrom('g1', 'g2'), { nil: undefined }),
    contextTokens: fc.option(fc.constantFrom(0, 300, 2_048, 5_000), { nil: undefined }),
    minWeightVersion: rarely(fc.constantFrom(0, 1)),
    maxWeightLag: rarely(fc.constantFrom(0, 1)),
    excludeServers: rarely(fc.subarray(['s1', 's2', 's3', 's4'])),
    labels: rarely(fc.constantFrom<Labels>({}, { zone: 'a' }, { zone: 'b' })),
    needs: rarely(fc.subarray<EngineFeature>(['tokenIdsIn', 'logprobs'])),
    dpRank: rarely(fc.constantFrom(0, 1)),
    boundServerId: rarely(serverId),
    boundServerEpoch: rarely(fc.integer({ min: 1, max: 6 })),
  })
  .map(({ stale, ...wish }) =>
    command(`acquire ${JSON.stringify({ ...wish, stale })}`, async (pair) => {
      const workerEpoch = (pair.workerEpochs.get(wish.workerId) ?? 1) + (stale ? 1_000 : 0);
      const expected = pair.model.acquire({ ...wish, workerEpoch });
      const { waits, ...item } = wish;
      const parking = waits ? { waitMs: 30_000, replyTo: `inbox.${wish.acquireId}` } : {};
      const { results } = await store.acquire(pair.pool, [{ ...item, ...parking, workerEpoch }]);
      expect(results.map(replayed)).toEqual([expected]);
      // An acquire that may wait no longer takes its waiter with it: its answer is the only one.
      if (!('parked' in expected) && pair.model.lanes.get(wish.acquireId) === undefined) {
        pair.waiting.delete(wish.acquireId);
      }
      pair.remember(wish.acquireId, expected);
    }),
  );

const release = fc
  .record({ acquireId, by: fc.constantFrom('acquireId', 'leaseId', 'older leaseId') })
  .map(({ acquireId: id, by }) =>
    command(`release ${id} by ${by}`, async (pair) => {
      const given = pair.sequences.get(id) ?? [];
      const seq = by === 'acquireId' ? undefined : ((by === 'leaseId' ? given.at(-1) : given[0]) ?? 999_999);
      const expected = pair.model.release(id, seq);
      const reply = await store.release(pair.pool, [{ acquireId: id, seq }]);
      expect(reply.results).toEqual([{ released: expected.released, reason: expected.reason }]);
      pair.compareAnswers(reply.answers, expected.answers);
    }),
  );

const transfer = fc
  .record({
    nth: fc.nat(),
    repeats: rarely(fc.constant(true)),
    unknown: rarely(acquireId),
    stranger: rarely(workerId),
    target: serverId,
    targetEpoch: rarely(fc.integer({ min: 1, max: 6 })),
    by: fc.constantFrom('acquireId', 'leaseId', 'leaseId', 'older leaseId'),
  })
  .map(({ nth, repeats, unknown, stranger, target, targetEpoch, by }) =>
    command(
      `transfer ${JSON.stringify({ nth, repeats, unknown, stranger, target, targetEpoch, by })}`,
      async (pair) => {
        const live = [...pair.model.leases.values()].map((lease) => lease.acquire);
        const { acquireId: id = 'a1', workerId: holder = 'w:1' } = live[nth % live.length] ?? {};
        const given = pair.sequences.get(unknown ?? id) ?? [];
        const fresh = {
          transferId: `t${pair.transfers.length}`,
          acquireId: unknown ?? id,
          seq: by === 'acquireId' ? undefined : ((by === 'leaseId' ? given.at(-1) : given[0]) ?? 999_999),
          workerId: stranger ?? holder,
          workerEpoch: pair.workerEpochs.get(stranger ?? holder) ?? 1,
          targetServerId: target,
          targetEpoch,
        };
        const entry = (repeats && pair.transfers[nth % pair.transfers.length]) || fresh;
        pair.transfers.push(entry);
        const expected = pair.model.transfer(entry);
        const real = await store.transfer(pair.pool, entry).catch((error: BroomwagonError) => ({ code: error.code }));
        if ('error' in expected.answer) return expect(real).toEqual({ code: expected.answer.error });
        if ('code' in real) throw new Error(`refused: ${real.code}`);
        expect(real.granted).toEqual(expected.answer);
        pair.compareAnswers(real.answers ?? [], expected.answers);
        transfers++;
      },
    ),
  );

const registerServer = fc
  .record({
    serverId,
    instanceId: fc.constantFrom('i1', 'i1', 'i1', 'i2', undefined),
    maxInflight: fc.integer({ min: 1, max: 4 }),
    weight: fc.constantFrom(1, 1, 0.5, 2),
    weightVersion: fc.constantFrom(0, 0, 1),
    labels: fc.option(fc.constantFrom<Labels>({ zone: 'a' }, { zone: 'b' }), { nil: undefined }),
    lacks: rarely(fc.subarray<EngineFeature>(['tokenIdsIn', 'logprobs'])),
  })
  .map((registration) =>
    command(`register ${JSON.stringify(registration)}`, async (pair) => {
      if (pair.hasVoid) await pair.sweep();
      // Fewer places than leases is legal; the bound of the test is then the leases that stand.
      const inflight = pair.model.inflight(registration.serverId);
      const maxInflight = Math.max(registration.maxInflight, inflight);
      const labels = registration.labels && JSON.stringify(registration.labels);
      const lacks = registration.lacks?.join(',');
      const full = {
        ...registration,
        labels,
        lacks,
        maxInflight,
        endpoint: 'http://127.0.0.1:1',
        dialect: 'vllm' as const,
      };
      const expected = pair.model.registerServer({ ...registration, maxInflight });
      pair.hasVoid = true;
      const reply = await store.registerServer(pair.pool, full);
      expect(reply.epoch).toBe(expected.epoch);
      pair.compareAnswers(reply.answers, expected.answers);
    }),
  );

const removeServer = serverId.map((id) =>
  command(`remove ${id}`, async (pair) => {
    if (pair.hasVoid) await pair.sweep();
    pair.hasVoid = true;
    expect(await store.removeServer(pair.pool, id)).toEqual({ removed: pair.model.removeServer(id) });
  }),
);

const registerWorker = fc.record({ workerId, registrationId: fc.constantFrom('one', 'two') }).map((registration) =>
  command(`worker ${registration.workerId} ${registration.registrationId}`, async (pair) => {
    if (pair.hasVoid) await pair.sweep();
    pair.hasVoid = true;
    const expected = pair.model.registerWorker(registration.workerId, registration.registrationId);
    const { workerEpoch } = await store.registerWorker(pair.pool, { ...registration, ttlMs: 3_600_000 });
    expect(workerEpoch).toBe(expected);
    pair.workerEpochs.set(registration.workerId, workerEpoch);
  }),
);

const voidWorker = workerId.map((id) =>
  command(`void ${id}`, async (pair) => {
    if (pair.hasVoid) await pair.sweep();
    pair.hasVoid = true;
    pair.model.voidWorker(id);
    await store.deregisterWorker(pair.pool, id, pair.workerEpochs.get(id) ?? 1);
  }),
);

const finishSession = fc.constantFrom('x', 'y').map((sessionId) =>
  command(`finish ${sessionId}`, async (pair) => {
    const finished = pair.model.finishSession(sessionId);
    expect(await store.finishSession(pair.pool, sessionId)).toEqual({ finished });
  }),
);

const clearSessions = fc.constant(
  command('clear sessions', async (pair) => {
    expect((await pools.clearSessions(pair.pool, '0')).cleared).toBe(pair.model.clearSessions());
  }),
);

const cordonServer = fc.record({ serverId, cordoned: fc.boolean() }).map(({ serverId: id, cordoned }) =>
  command(`cordon ${id} ${cordoned}`, async (pair) => {
    if (pair.hasVoid) await pair.sweep();
    const expected = pair.model.cordonServer(id, cordoned);
    const change = servers.cordon(pair.pool, id, cordoned);
    if (!expected) return expect(change).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    pair.hasVoid = true;
    pair.compareAnswers((await change).answers, expected);
  }),
);

const fenceServer = fc.record({ serverId, age: fc.constantFrom(0, 0, 1) }).map(({ serverId: id, age }) =>
  command(`fence ${id}, ${age} epochs old`, async (pair) => {
    if (pair.hasVoid) await pair.sweep();
    const epoch = Math.max(1, (pair.model.servers.get(id)?.epoch ?? 1) - age);
    const expected = pair.model.fenceServer(id, epoch);
    const fence = servers.fence(pair.pool, id, epoch, 'test');
    if (!expected) return expect(fence).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    pair.hasVoid = true;
    expect(await fence).toMatchObject(expected);
  }),
);

const updateServer = fc
  .record({ serverId, maxInflight: fc.integer({ min: 1, max: 5 }), weight: fc.constantFrom(1, 0.5, 2) })
  .map(({ serverId: id, ...wanted }) =>
    command(`update ${id} ${JSON.stringify(wanted)}`, async (pair) => {
      const change = { ...wanted, maxInflight: Math.max(wanted.maxInflight, pair.model.inflight(id)) };
      const expected = pair.model.updateServer(id, change);
      const reply = servers.update(pair.pool, { serverId: id, ...change });
      if (!expected) return expect(reply).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
      pair.compareAnswers((await reply).answers, expected);
    }),
  );

const pausePool = fc.constantFrom(true, false, false, false).map((paused) =>
  command(paused ? 'pause' : 'resume', async (pair) => {
    const { changed, answers } = pair.model.pausePool(paused);
    const reply = await store.pausePool(pair.pool, paused);
    expect(reply).toMatchObject({ paused, changed });
    pair.compareAnswers(reply.answers, answers);
  }),
);

const cancel = fc.record({ acquireId, workerId }).map(({ acquireId: id, workerId: by }) =>
  command(`cancel ${id} by ${by}`, async (pair) => {
    const workerEpoch = pair.workerEpochs.get(by) ?? 1;
    const expected = pair.model.cancel(id, by, workerEpoch);
    const reply = await store.cancel(pair.pool, { workerId: by, workerEpoch }, id);
    expect([reply.cancelled, reply.reason]).toEqual([expected.cancelled, expected.reason]);
    pair.compareAnswers(reply.answers, expected.answers);
  }),
);

const RESETTABLE = [
  'poolMaxInflight',
  'affinityBreakMargin',
  'affinityBreakMaxContextTokens',
  'policy',
  'groupPlacement',
] as const;
const configure = fc
  .record({
    set: fc.record(
      {
        policy: fc.constantFrom(...ROUTING_POLICIES),
        affinityBreakMargin: fc.constantFrom(0, 1, 2),
        affinityBreakMaxContextTokens: fc.constantFrom(0, 1_000),
        groupPlacement: fc.constantFrom(...GROUP_PLACEMENTS),
        groupAffinityCap: fc.constantFrom(1, 2, 8),
        groupSpreadBelowTokens: fc.constantFrom(0, 2_048),
        poolMaxInflight: fc.constantFrom(3, 4, 20),
      },
      { requiredKeys: [] },
    ),
    reset: fc.subarray([...RESETTABLE], { maxLength: 2 }),
  })
  .map(({ set, reset }) =>
    command(`configure ${JSON.stringify({ set, reset })}`, async (pair) => {
      const { version } = await pools.configure(pair.pool, set, reset);
      const { answers } = await servers.rescore(pair.pool, '0');
      const done = await pools.finish(pair.pool, version);
      const expected = pair.model.configure(set, reset);
      expect(done).toMatchObject({ version: expected.version, isScored: true });
      expect(done.nextPolicy).toBeUndefined();
      pair.compareAnswers(answers, expected.answers);
    }),
  );

const sweep = fc.constant(command('sweep', (pair) => pair.sweep()));

it('does what the reference model does, whatever the order of commands, and its books balance', async () => {
  // Many acquires and releases to each change of servers and workers.
  const commands = fc.commands(
    [
      ...Array.from({ length: 24 }, () => acquire),
      ...Array.from({ length: 8 }, () => release),
      ...Array.from({ length: 6 }, () => transfer),
      registerServer,
      registerServer,
      registerWorker,
      registerWorker,
      removeServer,
      voidWorker,
      finishSession,
      clearSessions,
      configure,
      configure,
      cordonServer,
      fenceServer,
      updateServer,
      pausePool,
      cancel,
      sweep,
    ],
    { maxCommands: 120, size: 'max' },
  );
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      const pair = new Pair();
      // Every third decision is replayed.
      const { version } = await pools.configure(pair.pool, { decisionSampleEvery: 3 });
      pair.model.configure({ decisionSampleEvery: 3 });
      await pools.finish(pair.pool, version);
      for (const id of ['w:1', 'w:2']) {
        const expected = pair.model.registerWorker(id, 'one');
        await store.registerWorker(pair.pool, { workerId: id, registrationId: 'one', ttlMs: 3_600_000 });
        pair.workerEpochs.set(id, expected);
      }
      for (const id of ['s1', 's2', 's3']) {
        pair.model.registerServer({ serverId: id, instanceId: 'i1', maxInflight: 2, weight: 1, weightVersion: 0 });
        await store.registerServer(pair.pool, {
          serverId: id,
          instanceId: 'i1',
          maxInflight: 2,
          weight: 1,
          weightVersion: 0,
          endpoint: 'http://127.0.0.1:1',
          dialect: 'vllm',
        });
      }
      await fc.asyncModelRun(() => ({ model: {}, real: pair }), list);
    }),
    { numRuns: RUNS },
  );
  expect(replays).toBeGreaterThan(100);
  expect(transfers).toBeGreaterThan(RUNS / 4);
});
