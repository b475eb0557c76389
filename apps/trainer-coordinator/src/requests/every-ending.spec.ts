import { type Claim, FAIL_REASONS, type FailReason, type ReturnReason, type TailPolicy } from '@broomwagon/contracts';
import { attemptNumber } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const MAX_FAILURES = 1;
const MAX_RETURNS = 3;
const POLICY: TailPolicy = {
  name: 'resume',
  overProvision: 1,
  maxFailures: MAX_FAILURES,
  maxReturns: MAX_RETURNS,
};

/**
 * Each way in which an attempt ends unfinished, and how often a request may be returned in this way. When an ending
 * repeats beyond that bound, the group fails, and the round reports the reason and asks for another group.
 */
const ENDINGS: [reason: FailReason, retryable: boolean, allowed: number][] = [
  ['engine-error', true, MAX_FAILURES],
  ['engine-error', false, 0],
  ['engine-rejected', false, 0],
  ['engine-abort', true, MAX_RETURNS],
  ['no-server', true, MAX_RETURNS],
  // The store is full or unavailable, or the payload is missing or is no prompt.
  ['payload', true, MAX_RETURNS],
  ['payload', false, 0],
  // Reported of a store that has room: no job is blocked.
  ['payload-full', true, MAX_RETURNS],
  // A worker gives up by itself after its lease was lost.
  ['aborted', true, MAX_RETURNS],
  ['shutdown', true, MAX_RETURNS],
  // A claim whose answer was lost; an end that the coordinator did not take (INTERNAL, VALIDATION_FAILED).
  ['unclaimed', true, MAX_RETURNS],
];

describe('a request that never ends', () => {
  let fixture: CoordinatorFixture;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start();
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  async function beginRound() {
    const { job, round } = await fixture.openRound(POLICY, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1, 0, 1) });
    return { job, status: () => fixture.call('round.status', { job }) };
  }

  async function expectFailed(
    status: Awaited<ReturnType<typeof beginRound>>['status'],
    reason: ReturnReason,
    attempts: number,
    message?: string,
  ): Promise<void> {
    const { lastFailures, returnedAttempts, failedGroups, shortfallGroups } = await status();
    expect({ returnedAttempts, failedGroups, shortfallGroups }).toEqual({
      returnedAttempts: { [reason]: attempts },
      failedGroups: 1,
      shortfallGroups: 1,
    });
    expect(lastFailures).toMatchObject([{ reason, ...(message !== undefined && { message }) }]);
  }

  it('covers every reason that a worker may report', () => {
    // `timeout` ends its sample at once, like an abort, and the sample is not returned.
    expect(new Set([...ENDINGS.map(([reason]) => reason), 'timeout'])).toEqual(new Set(FAIL_REASONS));
  });

  it.each(ENDINGS)('%s, retryable %s, may be returned %i times', async (reason, retryable, allowed) => {
    const { status } = await beginRound();
    const worker = await fixture.worker('w');
    for (let attempt = 1; attempt <= allowed + 1; attempt++) {
      const [claim] = (await worker.claim(1)) as [Claim];
      expect(attemptNumber(claim.attempt)).toBe(attempt);
      const body = { ...worker.fence(claim), reason, retryable, message: 'why' };
      const { state } = await fixture.call('request.fail', body);
      expect(state).toBe(attempt <= allowed ? 'pending' : 'failed');
    }
    await expectFailed(status, reason, allowed + 1, 'why');
  });

  it.each([`${'x'.repeat(299)}😀 and more`, `half a character: \ud83d`])(
    'ends with the message %j',
    async (message) => {
      const { status } = await beginRound();
      const worker = await fixture.worker('w');
      const [claim] = (await worker.claim(1)) as [Claim];
      const body = { ...worker.fence(claim), reason: 'engine-rejected' as const, retryable: false, message };
      expect(await fixture.call('request.fail', body)).toEqual({ state: 'failed' });
      const kept = Array.from(message.toWellFormed()).slice(0, 300).join('');
      await expectFailed(status, 'engine-rejected', 1, kept);
    },
  );

  it(`worker-lost: its workers die, may be returned ${MAX_RETURNS} times`, async () => {
    const { job, status } = await beginRound();
    for (let attempt = 1; attempt <= MAX_RETURNS + 1; attempt++) {
      const worker = await fixture.worker('dies');
      const [claim] = await worker.claim(1, 20_000);
      expect(attemptNumber(claim!.attempt)).toBe(attempt);
      await fixture.workers.deregister(fixture.pool, worker.identity);
      const over = attempt > MAX_RETURNS ? 'failed' : 'pending';
      const counts = async () => (await fixture.call('job.status', { job })).requests[over];
      await expect.poll(counts).toBe(1);
    }
    await expectFailed(status, 'worker-lost', MAX_RETURNS + 1);
  });
});
