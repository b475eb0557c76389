import { GROUP_PLACEMENTS, ROUTING_POLICIES, type EngineFeature, type Labels } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { command, rarely, serverId, workerId } from './routing-model.commands.fixture';
import { pools, servers, workers } from './routing-model.fixture';

export const registerServer = fc
  .record({
    serverId,
    instanceId: fc.constantFrom('i1', 'i1', 'i1', 'i2', undefined),
    maxInflight: fc.integer({ min: 1, max: 4 }),
    weight: fc.constantFrom(1, 1, 0.5, 2),
    weightVersion: fc.constantFrom(0, 0, 1),
    labels: fc.option(fc.constantFrom<Labels>({ zone: 'a' }, { zone: 'b' }), { nil: undefined }),
    lacks: rarely(fc.subarray<EngineFeature>(['tokenIdsIn', 'logprobs'])),
    models: rarely(fc.constantFrom(['a'], ['a', 'lora'], ['b'])),
  })
  .map((registration) =>
    command(`register ${JSON.stringify(registration)}`, async (pair) => {
      if (pair.hasExpired) await pair.sweep();
      // A capacity below the number of leases is legal, but would break the bound of the test, so it is raised.
      const inflight = pair.model.inflight(registration.serverId);
      const maxInflight = Math.max(registration.maxInflight, inflight);
      const lacks = registration.lacks?.join(',');
      const full = {
        ...registration,
        lacks,
        maxInflight,
        endpoint: 'http://127.0.0.1:1',
        dialect: 'vllm' as const,
        probe: false,
      };
      const reply = await servers.register(pair.pool, full);
      pair.begin(reply.epoch);
      const expected = pair.model.registerServer({ ...registration, maxInflight });
      pair.hasExpired = true;
      expect(reply.epoch).toBe(expected.epoch);
      pair.compareAnswers(reply.answers, expected.answers);
    }),
  );

export const removeServer = serverId.map((id) =>
  command(`remove ${id}`, async (pair) => {
    if (pair.hasExpired) await pair.sweep();
    pair.hasExpired = true;
    expect(await servers.remove(pair.pool, { serverId: id })).toEqual({ removed: pair.model.removeServer(id) });
  }),
);

export const cordonServer = fc.record({ serverId, cordoned: fc.boolean() }).map(({ serverId: id, cordoned }) =>
  command(`cordon ${id} ${cordoned}`, async (pair) => {
    if (pair.hasExpired) await pair.sweep();
    const expected = pair.model.cordonServer(id, cordoned);
    const change = servers.cordon(pair.pool, { serverId: id, cordoned });
    if (!expected) return expect(change).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    pair.hasExpired = true;
    pair.compareAnswers((await change).answers, expected);
  }),
);

export const fenceServer = fc.record({ serverId, age: fc.constantFrom(0, 0, 1) }).map(({ serverId: id, age }) =>
  command(`fence ${id}${age === 0 ? '' : ', an old epoch'}`, async (pair) => {
    if (pair.hasExpired) await pair.sweep();
    const epoch = (age === 0 && pair.model.servers.get(id)?.epoch) || pair.epochs[0]!;
    const fence = servers.fence(pair.pool, { serverId: id, epoch, reason: 'test' });
    if (!pair.model.servers.has(id)) return expect(fence).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    pair.hasExpired = true;
    const reply = await fence;
    pair.begin(reply.epoch);
    expect(reply).toMatchObject(pair.model.fenceServer(id, epoch)!);
  }),
);

export const drainServer = serverId.map((id) =>
  command(`drain ${id}`, async (pair) => {
    if (pair.hasExpired) await pair.sweep();
    const isThere = pair.model.drainServer(id);
    const drain = servers.drain(pair.pool, { serverId: id, deadlineMs: 3_600_000 });
    if (!isThere) return expect(drain).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    pair.hasExpired = true;
    expect((await drain).answers).toEqual([]);
  }),
);

export const endDrains = fc.constant(
  command('end drains', async (pair) => {
    if (pair.hasExpired) await pair.sweep();
    const { removed } = await servers.endDrains(pair.pool);
    expect(removed.map((one) => one.serverId).sort()).toEqual(pair.model.endDrains().sort());
  }),
);

export const updateServer = fc
  .record({
    serverId,
    maxInflight: fc.integer({ min: 1, max: 5 }),
    weight: fc.constantFrom(1, 0.5, 2),
    weightVersion: rarely(fc.constantFrom(0, 1)),
    labels: rarely(fc.constantFrom<Labels>({}, { zone: 'a' }, { zone: 'b' })),
  })
  .map(({ serverId: id, ...wanted }) =>
    command(`update ${id} ${JSON.stringify(wanted)}`, async (pair) => {
      if (pair.hasExpired) await pair.sweep();
      const said = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
      const change = { ...said, maxInflight: Math.max(wanted.maxInflight, pair.model.inflight(id)) };
      const expected = pair.model.updateServer(id, change);
      const reply = servers.update(pair.pool, { serverId: id, ...change });
      if (!expected) return expect(reply).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
      pair.hasExpired = true;
      pair.compareAnswers((await reply).answers, expected);
    }),
  );

/** Registers a worker: repeats the last registration, makes a new one, or repeats an earlier one late. */
export const registerWorker = fc
  .record({ workerId, kind: fc.constantFrom('repeat', 'new', 'late') })
  .map(({ workerId: id, kind }) =>
    command(`worker ${id} ${kind}`, async (pair) => {
      if (pair.hasExpired) await pair.sweep();
      const last = pair.registrations.get(id) ?? 0;
      const isLate = kind === 'late' && last > 0 && pair.model.isLive(id);
      const number = isLate ? last - 1 : kind === 'new' ? last + 1 : last;
      const registrationId = `registration-${number}`;
      const reply = workers.register(pair.pool, { workerId: id, registrationId, ttlMs: 3_600_000 });
      if (isLate) return expect(reply).rejects.toMatchObject({ code: 'FENCED' });
      pair.hasExpired = true;
      pair.registrations.set(id, number);
      const { workerEpoch } = await reply;
      pair.begin(workerEpoch);
      expect(workerEpoch).toBe(pair.model.registerWorker(id, registrationId));
      pair.workerEpochs.set(id, workerEpoch);
    }),
  );

export const expiredWorker = workerId.map((id) =>
  command(`void ${id}`, async (pair) => {
    if (pair.hasExpired) await pair.sweep();
    pair.hasExpired = true;
    pair.model.expiredWorker(id);
    await workers.deregister(pair.pool, { workerId: id, workerEpoch: pair.workerEpochs.get(id) ?? 'e0' });
  }),
);

export const pausePool = fc.constantFrom(true, false, false, false).map((paused) =>
  command(paused ? 'pause' : 'resume', async (pair) => {
    const { changed, answers } = pair.model.pausePool(paused);
    const reply = await pools.pause(pair.pool, { paused });
    expect(reply).toMatchObject({ paused, changed });
    pair.compareAnswers(reply.answers, answers);
  }),
);

export const sweep = fc.constant(command('sweep', (pair) => pair.sweep()));

const RESETTABLE = [
  'poolMaxInflight',
  'affinityBreakMargin',
  'affinityBreakMaxContextTokens',
  'policy',
  'groupPlacement',
  'requiredWeightVersion',
] as const;
export const configure = fc
  .record({
    set: fc.record(
      {
        policy: fc.constantFrom(...ROUTING_POLICIES),
        affinityBreakMargin: fc.constantFrom(0, 1, 2, 'never' as const),
        affinityBreakMaxContextTokens: fc.constantFrom(0, 1_000),
        groupPlacement: fc.constantFrom(...GROUP_PLACEMENTS),
        groupAffinityCap: fc.constantFrom(1, 2, 8),
        groupSpreadBelowTokens: fc.constantFrom(0, 2_048),
        poolMaxInflight: fc.constantFrom(3, 4, 20),
        requiredWeightVersion: fc.constantFrom(0, 0, 1),
      },
      { requiredKeys: [] },
    ),
    reset: fc.subarray([...RESETTABLE], { maxLength: 2 }),
  })
  .map(({ set, reset }) =>
    command(`configure ${JSON.stringify({ set, reset })}`, async (pair) => {
      if (pair.hasExpired) await pair.sweep();
      // The sweep moves the waiters of several quarantined servers in any order, so only one is quarantined at a time.
      const { requiredWeightVersion: wanted } = set;
      const left = [...pair.model.servers.values()].filter(
        (server) => server.weightVersion !== wanted && pair.model.lanes.first(({ lane }) => lane === server.serverId),
      );
      if (wanted !== undefined && left.length > 1) return;
      pair.hasExpired = true;
      const { revision } = await pools.configure(pair.pool, set, reset);
      const { answers } = await servers.rescore(pair.pool, {});
      const done = await pools.finish(pair.pool, revision);
      const expected = pair.model.configure(set, reset);
      expect(done).toMatchObject({ version: expected.version, isScored: true });
      expect(done.nextPolicy).toBeUndefined();
      pair.compareAnswers(answers, expected.answers);
    }),
  );
