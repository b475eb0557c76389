import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type RoundStatus } from '@broomwagon/contracts';
import { attemptNumber, waitUntil } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Operations } from '../lab/reference-trainer/src/loop/operations';
import { findEngines, Fleet } from '../lab/reference-trainer/src/fleet/fleet';
import { startEngine } from '../lab/engine-simulator/src/test-engine';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const PROMPTS = dataSet(16, 4);
const GROUPS_PER_STEP = 8;
const STEPS = PROMPTS.length / GROUPS_PER_STEP;
const LIVE = ['engine-0', 'engine-1', 'engine-2'];
const DIED = ['died-0', 'died-1'];

let system: TestSystem;
let fleet: Fleet;
/** Accepts connections and answers nothing. */
const silent: Server = createServer(() => undefined);
beforeAll(async () => {
  const environment = { SERVER_FAILED_AFTER_MS: '3000' };
  system = await TestSystem.start({ engines: LIVE.length, prompts: PROMPTS, environment });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { servers } = await system.call('server.list', {});
  const urlOf = new Map(servers.map(({ serverId, endpoint }) => [serverId, endpoint]));
  const dying = await Promise.all(DIED.map(() => startEngine('vllm')));
  DIED.forEach((serverId, index) => urlOf.set(serverId, dying[index]!.url));
  const names = [...urlOf.keys()];
  const found = await findEngines([...urlOf.values()], (index) => names[index]!);
  // No engine is asked to reset its prefix cache, because dead ones would fail to: only their state keeps them unused.
  const engines = found.map((engine) => ({
    ...engine,
    capabilities: { ...engine.capabilities, prefixCacheReset: false },
  }));
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const neverAnswered = { ...engines[0]!, serverId: 'never-answered', endpoint: silentUrl };
  const operations = new Operations(system.client, system.pool, { deadlineMs: 30_000 });
  fleet = new Fleet(operations, operations, [...engines, neverAnswered], 256, 'run');
  await fleet.register(0);
  const isReady = async () => (await ready()).serverIds.length === DIED.length + LIVE.length;
  await waitUntil(isReady, { what: 'all engines but the silent one', timeoutMs: 30_000 });
  await Promise.all(dying.map((engine) => engine.close()));
  const dead = async () => (await system.call('server.list', {})).servers.filter(({ state }) => state === 'failed');
  await waitUntil(async () => (await dead()).length === DIED.length, {
    what: 'the failure of the dead engines',
    timeoutMs: 30_000,
  });
});
beforeEach(() => fleet.countOn());
afterAll(async () => {
  silent.closeAllConnections();
  silent.close();
  await system?.stop();
});

async function ready() {
  const { readyServers, perServer } = await system.call('lb.status', {});
  const serverIds = perServer.filter(({ state }) => state === 'ready').map(({ serverId }) => serverId);
  return { readyServers, serverIds: serverIds.sort() };
}

it('registers dead engines each time: none becomes ready, and each sample needs one attempt', async () => {
  const looks: Awaited<ReturnType<typeof ready>>[] = [];
  const returned = new Map<string, RoundStatus['returnedAttempts']>();
  const { lines } = await system.train('job', PROMPTS, {
    groupsPerStep: GROUPS_PER_STEP,
    policy: 'wait',
    onStatus: ({ roundId, returnedAttempts }) => void returned.set(roundId, returnedAttempts),
    setWeightVersion: async (version, trainer) => {
      const poolVersion = await fleet.setWeightVersion(version, trainer);
      looks.push(await ready());
      return poolVersion;
    },
  });
  expect(looks).toHaveLength(STEPS);
  for (const { readyServers, serverIds } of looks) {
    expect(readyServers).toBeLessThanOrEqual(LIVE.length);
    expect(LIVE).toEqual(expect.arrayContaining(serverIds));
  }
  expect(findFaults('job', PROMPTS, lines)).toEqual([]);
  const attempts = lines.flatMap(({ segments }) => segments.map(({ attempt }) => attemptNumber(attempt)));
  expect(new Set(attempts)).toEqual(new Set([1]));
  expect([...returned.values()]).toEqual(Array.from({ length: STEPS }, () => ({})));
});

it('resumes groups under the next weights, and throws no token away for its version under `maxVersionSpan: 1`', async () => {
  const { lines } = await system.train('cut', PROMPTS, {
    groupsPerStep: GROUPS_PER_STEP / 2,
    policy: 'resume',
    tail: { maxVersionSpan: 1, maxCuts: 1 },
    setWeightVersion: (version, trainer) => fleet.setWeightVersion(version, trainer),
  });
  expect(findFaults('cut', PROMPTS, lines)).toEqual([]);
  const { summary } = await system.call('job.ledger', { job: 'cut' });
  expect(summary.versionSpan.max).toBe(1);
  expect(summary.waste.byReason).not.toHaveProperty('version-span');
});
