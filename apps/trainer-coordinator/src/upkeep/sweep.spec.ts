import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());
beforeEach(() => fixture.freshPool());

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

it('continues with other aborts and drops when one abort cannot be followed', async () => {
  const { client, pool } = fixture;
  const { job, round } = await fixture.openRound({ name: 'resume', overProvision: 1 }, 2);
  await client.call(pool, 'round.submit', { ...round, groups: groups(2) });
  await fixture.redis.set(`${fixture.rootKey}:abort:broken`, 'of another type');
  await fixture.redis.zadd(`${fixture.rootKey}:aborts`, 1, 'broken');
  await fixture.redis.zadd(`${fixture.rootKey}:groups:dropped`, 1, `${job}/none`);
  await expect.poll(() => fixture.redis.zcard(`${fixture.rootKey}:groups:dropped`)).toBe(0);
});

it('counts and logs an impossible count when it is found, and when it is corrected', async () => {
  const warn = vi.spyOn(Logger.prototype, 'warn');
  const { client, pool } = fixture;
  const { job, round } = await fixture.openRound({ name: 'resume', overProvision: 1 }, 2);
  await client.call(pool, 'round.submit', { ...round, groups: groups(2) });
  expect(await fixture.metric('broomwagon_miscounts')).toBe(0);
  await fixture.redis.hset(`${fixture.rootKey}:job-counts:${job}`, 'pending', 0);
  await (await fixture.worker('counting')).claim(2);
  await expect
    .poll(async () => (await client.call(pool, 'job.status', { job })).requests)
    .toMatchObject({ submitted: 4, pending: 2, claimed: 2 });
  await expect.poll(() => fixture.metric('broomwagon_miscounts')).toBe(2);
  const lines = () => warn.mock.calls.filter(([about]) => (about as { pool?: string }).pool === pool);
  // The first of the two lines is left out when the job is counted again before the check.
  await expect
    .poll(() => lines().at(-1))
    .toEqual([
      { pool, jobs: [job], mended: expect.arrayContaining([expect.anything()]) },
      expect.stringContaining('were corrected'),
    ]);
});

it('counts each time that Redis was found to be another process', async () => {
  const { client, pool } = fixture;
  const { job } = await fixture.openRound({ name: 'resume', overProvision: 1 }, 1);
  const { stamp } = await client.call(pool, 'job.status', { job });
  expect(await fixture.metric('broomwagon_generations_total')).toBe(0);
  await fixture.redis.hset(`${fixture.rootKey}:meta`, 'generationOf', 'another process');
  await expect.poll(() => fixture.metric('broomwagon_generations_total')).toBe(1);
  // Another client renews the generation.
  await fixture.redis.hset(`${fixture.rootKey}:meta`, 'generation', '0123456789abcdef');
  await expect.poll(() => fixture.metric('broomwagon_generations_total')).toBe(2);
  // Any replica refuses a trainer of another generation.
  await expect(client.call(pool, 'job.status', { job, stamp })).rejects.toMatchObject({ code: 'GENERATION_CHANGED' });
});
