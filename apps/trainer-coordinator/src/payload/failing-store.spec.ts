import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JobStore, openPayloadStore, RoundStore } from '@broomwagon/state';
import { afterAll, expect, it } from 'vitest';
import { TestPools } from '../../../../libs/state/src/rounds/test-pools.fixture';
import { CoordinatorConfig } from '../coordinator.config';
import type { CoordinatorMetrics } from '../coordinator.metrics';
import type { GrantService } from '../grants/grant.service';
import { PayloadRoomService } from './payload-room.service';

const root = mkdtempSync(join(tmpdir(), 'broomwagon-room-'));
const test = new TestPools();
afterAll(async () => {
  await test.close();
  rmSync(root, { recursive: true });
});

it('stops the claims of every job while the payload folder is not mounted, reports why, and starts them again', async () => {
  const folder = join(root, 'payloads');
  const payloads = await openPayloadStore({ driver: 'file', url: '', dir: folder, keyPrefix: '' });
  await test.fresh();
  const { pool, runner } = test;
  await test.open({ policy: { name: 'wait', overProvision: 1 }, neededGroups: 1, samples: 2 });
  let grants = 0;
  const service = new PayloadRoomService(
    payloads,
    new JobStore(runner),
    new RoundStore(runner),
    { soon: () => (grants += 1) } as unknown as GrantService,
    { blockedJobs: { set: () => undefined } } as unknown as CoordinatorMetrics,
    new CoordinatorConfig(),
  );
  renameSync(folder, `${folder}-away`);
  await service.lookAtAll(pool);
  expect(await test.claim()).toEqual([]);
  const { blockedReason } = await test.rounds.status(pool, { job: 'job' });
  expect(blockedReason).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining(`stat '${folder}'`) });
  await expect(service.readRoom(pool, 'job')).rejects.toMatchObject({ code: 'UNAVAILABLE', retryable: true });
  renameSync(`${folder}-away`, folder);
  await service.lookAtAll(pool);
  expect((await test.rounds.status(pool, { job: 'job' })).blockedReason).toBeUndefined();
  expect(grants).toBe(1);
  expect(await test.claim()).toHaveLength(2);
});
