import { afterAll, beforeAll, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());

it('does everything else in a pool with a round that cannot be swept', async () => {
  const { client, pool } = fixture;
  const { job, round } = await fixture.openRound({ name: 'resume', overProvision: 2 }, 1, 2);
  await client.call(pool, 'round.submit', { ...round, groups: groups(2) });
  await fixture.redis.set(`${fixture.rootKey}:round-accepted:${job}/${round.roundId}`, 'of another type');
  await fixture.redis.sadd(`${fixture.rootKey}:sweeps`, `${job}/${round.roundId}`);
  await fixture.redis.hset(`${fixture.rootKey}:round:${job}/${round.roundId}`, 'state', 'closed');
  const body = { syncId: 's', version: 1, mode: 'abort' as const, deadlineMs: 1_000 };
  await client.call(pool, 'weights.begin', body);
  await fixture.redis.hset(`${fixture.rootKey}:weights:sync`, 'deadlineAtMs', 1);
  await expect
    .poll(async () => (await client.call(pool, 'weights.status', { syncId: 's' })).sync)
    .toMatchObject({ state: 'rolled-back', reason: 'deadline' });
});
