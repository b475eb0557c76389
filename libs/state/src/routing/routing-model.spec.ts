import * as fc from 'fast-check';
import { afterAll, expect, inject, it, vi } from 'vitest';
import { closeStores, Pair, pools, replays, workers, servers } from './routing-model.fixture';
import {
  acquire,
  cancel,
  clearSessions,
  finishSession,
  release,
  transfer,
  transfers,
} from './routing-model.leases.fixture';
import {
  configure,
  cordonServer,
  drainServer,
  endDrains,
  fenceServer,
  pausePool,
  registerServer,
  registerWorker,
  removeServer,
  sweep,
  updateServer,
  expiredWorker,
} from './routing-model.servers.fixture';

/** Number of random sequences. */
const RUNS = inject('runsFactor') === 1 ? 40 : 100 * inject('runsFactor');
vi.setConfig({ testTimeout: 60_000 + RUNS * 1_000 });

afterAll(closeStores);

it('gives the results of the reference model, whatever the order of commands, and balanced counts', async () => {
  // There are many acquires and releases for each change of servers and workers.
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
      expiredWorker,
      finishSession,
      clearSessions,
      configure,
      configure,
      cordonServer,
      drainServer,
      endDrains,
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
      const { revision } = await pools.configure(pair.pool, { decisionSampleEvery: 3 });
      pair.model.configure({ decisionSampleEvery: 3 });
      await pools.finish(pair.pool, revision);
      for (const id of ['w:1', 'w:2']) {
        const registration = { workerId: id, registrationId: 'registration-0', ttlMs: 3_600_000 };
        const { workerEpoch } = await workers.register(pair.pool, registration);
        pair.begin(workerEpoch);
        pair.workerEpochs.set(id, pair.model.registerWorker(id, 'registration-0'));
      }
      for (const id of ['s1', 's2', 's3']) {
        const registration = { serverId: id, instanceId: 'i1', maxInflight: 2, weight: 1, weightVersion: 0 };
        const more = { endpoint: 'http://127.0.0.1:1', dialect: 'vllm' as const, probe: false };
        pair.begin((await servers.register(pair.pool, { ...registration, ...more })).epoch);
        pair.model.registerServer(registration);
      }
      await fc.asyncModelRun(() => ({ model: {}, real: pair }), list);
    }),
    { numRuns: RUNS },
  );
  expect(replays).toBeGreaterThan(RUNS);
  expect(transfers).toBeGreaterThan(RUNS / 4);
});
