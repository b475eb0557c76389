import { BroomwagonError, type ErrorCode } from '@broomwagon/contracts';
import type { EngineStep, WeightStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import type { EngineHealth } from './engine-health';
import { PrefixCachesService } from './prefix-caches.service';
import type { ServersService } from './servers.service';

const STEP: EngineStep = { serverId: 's', endpoint: 'http://e', dialect: 'vllm', syncId: 'sync' };

async function resume(sync: object | undefined, failsWith?: ErrorCode) {
  const done: unknown[] = [];
  const status = () =>
    sync === undefined
      ? Promise.reject(new BroomwagonError('WEIGHT_SYNC_NOT_FOUND', 'gone'))
      : Promise.resolve({ sync: { syncId: 'sync', fromVersion: 3, version: 4, ...sync } });
  const resetPrefixCache = async ({ serverId }: EngineStep) => {
    done.push(`reset ${serverId}`);
    if (failsWith !== undefined) throw new BroomwagonError(failsWith, 'scripted');
  };
  const update = async (_: string, change: object) => void done.push(change);
  const caches = new PrefixCachesService(
    { status } as unknown as WeightStore,
    { resetPrefixCache } as unknown as EngineHealth,
    { update } as unknown as ServersService,
  );
  await caches.beforeResume('pool', STEP);
  return done;
}

it.each(['abort', 'wait'])(
  'resets the prefix cache of an engine that goes on with new weights, mode %s',
  async (mode) => {
    expect(await resume({ state: 'committed', mode })).toEqual(['reset s']);
  },
);

it.each([{ state: 'rolled-back', mode: 'abort' }, { state: 'committed', mode: 'keep' }, undefined])(
  'leaves it alone when the weights are the older ones, or its requests were kept: %j',
  async (sync) => {
    expect(await resume(sync)).toEqual([]);
  },
);

it.each(['ENGINE_ERROR', 'ENGINE_UNREACHABLE', 'ENGINE_STALLED'] as const)(
  'quarantines the server of an engine that fails to: %s',
  async (code) => {
    const done = await resume({ state: 'committed', mode: 'abort' }, code);
    expect(done).toEqual(['reset s', { serverId: 's', weightVersion: 3 }]);
  },
);

it('takes an engine as it is that has no such route', async () => {
  expect(await resume({ state: 'committed', mode: 'abort' }, 'ENGINE_REJECTED')).toEqual(['reset s']);
});
