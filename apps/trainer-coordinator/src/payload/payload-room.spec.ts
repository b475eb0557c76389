import { type AttemptId, type Claim, type TailPolicy } from '@broomwagon/contracts';
import { openPayloadStore, type PayloadStore } from '@broomwagon/state';
import { testRedisUrl, waitUntil } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };
const QUOTA_BYTES = 40_000;
/** Tokens of a sample. Their 6,000 bytes are more than the 2 bytes for each of 100 tokens that are reserved. */
const TOKENS = 60;
const TOKEN_BYTES = 100;
let fixture: CoordinatorFixture;
let payloads: PayloadStore;

beforeAll(async () => {
  fixture = await CoordinatorFixture.start(2, { payloadQuotaBytes: QUOTA_BYTES });
  const [keyPrefix] = fixture.rootKey.split(':') as [string];
  payloads = await openPayloadStore({
    driver: 'redis',
    url: testRedisUrl(),
    dir: '',
    keyPrefix,
    quotaBytes: QUOTA_BYTES,
  });
});
afterAll(async () => {
  await payloads.close();
  await fixture.stop();
});
beforeEach(() => fixture.freshPool());

const name = (job: string, owner: string, attempt: AttemptId) => ({
  pool: fixture.pool,
  job,
  owner,
  name: `${attempt}.${TOKENS}`,
});

it('stops the claims of a job whose tokens have no room, counts the tokens as waste, reports the reason, and resumes', async () => {
  const { client, pool } = fixture;
  const { job, round } = await fixture.openRound(WAIT, 16);
  await client.call(pool, 'round.submit', { ...round, groups: groups(16, 0, 1) });
  const worker = await fixture.worker('w');
  const status = () => client.call(pool, 'round.status', { job });
  // Like our worker: a request whose tokens cannot be stored is handed back, and everything is tried again at once.
  const run = async (claim: Claim): Promise<'finished' | 'refused'> => {
    try {
      await payloads.put(name(job, claim.requestId, claim.attempt), Buffer.alloc(TOKENS * TOKEN_BYTES));
    } catch {
      const failure = { reason: 'payload-full' as const, retryable: true, lostTokens: TOKENS };
      await client.call(pool, 'request.fail', { ...worker.fence(claim), ...failure });
      return 'refused';
    }
    await worker.complete(claim, TOKENS);
    return 'finished';
  };
  const ends = { finished: 0, refused: 0 };
  const claimAll = async () => {
    for (let empty = 0; empty < 10;) {
      const claims = await worker.claim(2);
      if (claims.length === 0) empty += 1;
      for (const claim of claims) ends[await run(claim)] += 1;
      if (ends.refused > 20) return;
    }
  };
  await claimAll();
  // Six samples fit. Two requests ran when the quota became full: tokens of one or both are wasted, and of no others.
  expect(ends.finished).toBe(6);
  expect(ends.refused).toBeLessThanOrEqual(2);
  const blocked = await status();
  expect(blocked.blockedReason).toMatchObject({
    code: 'PAYLOAD_STORE_FULL',
    message: expect.stringMatching(/of 40000 bytes.*raise PAYLOAD_QUOTA_BYTES/),
    sinceMs: expect.any(Number),
  });
  expect(blocked.wastedByReason).toEqual({ 'not-stored': TOKENS * ends.refused });
  expect(blocked.wastedTokens).toBe(TOKENS * ends.refused);

  const finished = await fixture.redis.keys(`*payload:{${pool}/${job}}:item:*~1-*.${TOKENS}`);
  await fixture.redis.del(finished);
  await fixture.redis.hset(`${fixture.rootKey.split(':')[0]}:payload:{${pool}/${job}}:meta`, 'usedBytes', '500');
  await waitUntil(async () => (await status()).blockedReason === undefined, {
    what: 'the claims to go on',
    timeoutMs: 20_000,
  });
  const before = ends.finished;
  await claimAll();
  expect(ends.finished).toBe(before + 6);
});

it('reserves room for live samples when groups are submitted', async () => {
  const { client, pool } = fixture;
  const { job, round } = await fixture.openRound(WAIT, 190);
  // 200 bytes for each of 100 tokens at 2 bytes: 40,000 bytes hold 200 samples, less their prompts.
  const submit = (count: number, from: number) =>
    client.call(pool, 'round.submit', { ...round, groups: groups(count, from, 1) });
  await submit(120, 0);
  await expect(submit(70, 120)).rejects.toMatchObject({
    code: 'PAYLOAD_STORE_FULL',
    field: 'groups',
    message: expect.stringMatching(/may take 14000 bytes.*24000 are reserved for 120 live samples/),
  });
  expect(await client.call(pool, 'round.status', { job })).toMatchObject({ roundGroups: 120 });
  await submit(20, 120);
  await expect(
    client.call(pool, 'round.submit', { ...round, groups: [{ ...groups(1, 500, 1)[0]!, maxTokens: 30_000 }] }),
  ).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'groups' });
});
