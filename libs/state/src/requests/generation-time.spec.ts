import type { Claim } from '@broomwagon/contracts';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { buildSegment, TestPools, type TestRound } from '../rounds/test-pools.fixture';

const test = new TestPools();
const { requests, workers } = test;
const RETURNED = { countsAsFailure: false, retryable: true, reason: 'engine-error' as const };
beforeEach(() => test.fresh());
afterAll(() => test.close());

const open = (extra: Partial<TestRound> = {}) =>
  test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 1, samples: 1, timeoutMs: 1_000, ...extra });
const claim = async () => (await test.claim(1))[0] as Claim;
const save = (of: Claim, generatedMs: number, tokens = 1) =>
  requests.save(test.pool, { ...test.fence(of), ...buildSegment(of, tokens), generatedMs });
const fail = (of: Claim, generatedMs?: number) =>
  requests.fail(test.pool, { ...test.fence(of), ...buildSegment(of, 2), ...RETURNED, generatedMs });

it('adds up the times in which attempts of a sample have generated tokens, however they end', async () => {
  await open();
  const first = await claim();
  expect(first).toMatchObject({ timeoutMs: 1_000, generatedMs: 0 });
  await save(first, 100);
  // An older save arrives late.
  await save(first, 50, 2);
  await fail(first, 250);
  await fail(first, 9_999);
  const second = await claim();
  expect(second.generatedMs).toBe(250);
  // When the worker dies, the time of the last partial save counts.
  await save(second, 300, 3);
  const registration = { workerId: 'w', registrationId: test.unique('r'), ttlMs: 60_000 };
  const { workerEpoch } = await workers.register(test.pool, registration);
  test.holder = { workerId: 'w', workerEpoch };
  while ((await requests.expiredAttempts(test.pool)).more);
  const third = await claim();
  expect(third.generatedMs).toBe(550);
  // The third attempt has generated nothing.
  await fail(third);
  expect((await claim()).generatedMs).toBe(550);
  await expect(save(first, 10)).rejects.toMatchObject({ code: 'FENCED' });
});

it.each([
  ['resume', 2, 400],
  ['regenerate', 2, 0],
  ['regenerate', 0, 0],
] as const)(
  'keeps the time over a cut unless the policy discards: %s, %d tokens',
  async (name, tokens, generatedMs) => {
    const policy = { name, overProvision: 2 } as TestRound['policy'];
    const round = await open({ policy, newGroups: 2 });
    const [first, second] = (await test.claim(2)) as [Claim, Claim];
    await save(second, 400, tokens);
    await test.complete(first);
    const ended = { ...test.fence(second), ...buildSegment(second, tokens), ...RETURNED, generatedMs: 400 };
    expect(await requests.fail(test.pool, ended)).toMatchObject({ state: 'unfinished' });
    const { trainerEpoch } = round;
    await test.readAndClose(round);
    await open({ policy, step: 2, newGroups: 0, takeGroups: 1, trainerEpoch });
    expect((await claim()).generatedMs).toBe(generatedMs);
  },
);

it('reports no time for samples without a timeout of their own', async () => {
  await open({ timeoutMs: undefined });
  const first = await claim();
  await save(first, 100);
  await fail(first, 200);
  expect(await claim()).not.toHaveProperty('generatedMs');
});
