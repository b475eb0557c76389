import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isBroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { disk, ERRNOS, mendDisk } from '../../../../libs/state/src/payload/failing-disk.fixture';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

vi.mock('node:fs/promises', async (importOriginal) =>
  (await import('../../../../libs/state/src/payload/failing-disk.fixture')).mockDisk(importOriginal),
);

const POLICY: TailPolicy = { name: 'wait', overProvision: 1 };
/** Calls of the file system before the first failure: before, in and after the payloads of a submission. */
const STEPS = [0, 1, 2, 5, 9, 14, 20];

describe('a coordinator whose payload folder fails', () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-failing-folder-'));
  let fixture: CoordinatorFixture;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1, { payloadDriver: 'file', payloadDir: folder });
  });
  afterAll(async () => {
    mendDisk();
    await fixture?.stop();
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => {
    mendDisk();
    fixture.freshPool();
  });

  it.each(ERRNOS)(
    'refuses a round.submit under %s for now, adds nothing of it, and takes its repeat',
    async (errno) => {
      const { job, round } = await fixture.openRound(POLICY, 2 * STEPS.length);
      let failures = 0;
      for (const [index, step] of STEPS.entries()) {
        const submission = { ...round, groups: groups(2, 2 * index, 1) };
        Object.assign(disk, { failsAfter: step, errno });
        const error: unknown = await fixture.call('round.submit', submission, { timeoutMs: 30_000 }).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        mendDisk();
        if (error !== undefined) {
          failures += 1;
          expect(isBroomwagonError(error) && error.retryable, String(error)).toBe(true);
          expect((error as { code: string }).code).toMatch(/^(UNAVAILABLE|PAYLOAD_STORE_FULL)$/);
          expect((await fixture.call('round.status', round)).roundGroups).toBe(2 * index);
        }
        // A process that could not remove its lock holds the lock for 10 s.
        rmSync(join(folder, fixture.pool, job, '.lock'), { recursive: true, force: true });
        const repeat = fixture.client.callWithRetry(fixture.pool, 'round.submit', submission, { deadlineMs: 20_000 });
        const { added, repeated, roundGroups } = await repeat;
        // The client may have repeated its call without an answer.
        expect([roundGroups, added + repeated]).toEqual([2 * (index + 1), 2]);
      }
      expect(failures).toBeGreaterThan(0);
      expect(await fixture.call('round.status', { job })).toMatchObject({ failedGroups: 0 });
    },
  );

  it.each(['EIO', 'EACCES', 'ESTALE'])(
    'forgets a segment whose file answers %s while the store works, and keeps it while the store does not',
    async (errno) => {
      const { job, round } = await fixture.openRound(POLICY, 1);
      await fixture.call('round.submit', { ...round, groups: groups(1, 0, 1) });
      const worker = await fixture.worker('worker');
      const [first] = await worker.claim(1);
      const files = () => readdirSync(folder, { recursive: true, encoding: 'utf8' });
      const before = files();
      const ref = await fixture.put(first!, '{"text":"tokens"}');
      const path = files().findLast((file) => !before.includes(file) && /[\da-f]{62}$/.test(file))!;
      const segment = { ...fixture.buildSegment(first!, 4), ref };
      await fixture.call('request.fail', { ...worker.fence(first!), reason: 'aborted', retryable: true, segment });
      const report = async (failure: object) => {
        // Nothing is claimed while the store is known to fail.
        const [claim] = await worker.claim(1);
        Object.assign(disk, { failsAfter: 0, errno, ...failure });
        const lost = { ...worker.fence(claim!), reason: 'payload', retryable: true, missingRef: ref } as const;
        await fixture.call('request.fail', lost);
        mendDisk();
        await expect.poll(async () => (await fixture.call('round.status', { job })).blockedReason).toBeUndefined();
        return claim!.segments;
      };
      expect(await report({})).toHaveLength(1);
      expect(await report({ path })).toHaveLength(1);
      const [last] = await worker.claim(1);
      expect(last!.segments).toEqual([]);
      expect(await fixture.call('round.status', { job })).toMatchObject({
        failedGroups: 0,
        wastedByReason: { missing: 4 },
      });
    },
  );
});
