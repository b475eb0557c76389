import { setTimeout as delay } from 'node:timers/promises';
import { roundTerms } from '@broomwagon/policies';
import { FunctionRunner, PoolDirectory, RoundStore } from '@broomwagon/state';
import { waitUntil } from '@broomwagon/testing';
import { readCpuSeconds } from '../generator/cpu-time';
import { KEY_PREFIX, type PoolState, type Stage } from '../stage';
import { plainTable } from '../table';

const WINDOW_MS = 20_000;
const POLICY = { name: 'wait', overProvision: 1 } as const;

/** `bench pools`: CPU of Redis with pools that were used once; their jobs, workers and servers are gone. */
export async function benchIdlePools(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const { redis: server } = stage.services;
  const state = stage.state(server);
  const directory = new PoolDirectory(state.redis, KEY_PREFIX);
  for (const app of ['load-balancer', 'trainer-coordinator']) await stage.startApp(app, app, ['*'], server);
  const rows: { pools: number; redisCpuPercent: number }[] = [];
  let pools = 0;
  for (const count of isQuick ? [0, 100] : [0, 100, 1_000]) {
    for (; pools < count; pools++) {
      await useOnce(state, `idle-${pools}`);
      await directory.add(`idle-${pools}`);
    }
    await waitUntil(async () => (await directory.awake()).length === 0, {
      what: 'all pools to fall asleep',
      timeoutMs: 120_000,
    });
    const before = readCpuSeconds(server.pid!);
    const beganAtMs = performance.now();
    await delay(WINDOW_MS);
    const seconds = (performance.now() - beganAtMs) / 1_000;
    rows.push({ pools: count, redisCpuPercent: ((readCpuSeconds(server.pid!) - before) / seconds) * 100 });
  }
  const cells = rows.map(({ pools: count, redisCpuPercent }) => [String(count), redisCpuPercent.toFixed(1)]);
  return { report: { rows }, text: plainTable(['idle pools', 'CPU of Redis, %'], cells) };
}

async function useOnce(state: PoolState, pool: string): Promise<void> {
  const rounds = new RoundStore(new FunctionRunner(state.redis, KEY_PREFIX));
  const [worker] = await state.fill(pool, 1, 1);
  const plan = { kind: 'short' as const, neededGroups: 1, takeGroups: 0, newGroups: 1 };
  const { trainerEpoch } = await rounds.open(pool, {
    ...roundTerms(POLICY, plan, {}),
    ...plan,
    job: 'job',
    roundId: 'r1',
    planId: 'p1',
    step: 1,
    policy: POLICY,
    weightVersion: 0,
    orphanAfterMs: 86_400_000,
  });
  await rounds.cancel(pool, { job: 'job', roundId: 'r1', trainerEpoch, mode: 'drop', reason: 'bench' });
  await state.workers.deregister(pool, worker!);
  await state.servers.remove(pool, { serverId: 'server-0' });
}
