import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../routing/routing-store.fixture';
import { CounterAudit } from './counter-audit';

let test: ReturnType<typeof openTestStore>;
let audit: CounterAudit;
beforeEach(() => {
  test = openTestStore();
  audit = new CounterAudit(test.redis, test.runner);
});
afterEach(() => test.close());

it('takes back what two looks have seen while it was busy, and mends nothing that is right', async () => {
  const { epoch } = await test.server('a');
  const worker = await test.worker('w');
  // As seen by a look that read the leases before they were granted, and the counters after.
  const wish = { sessionId: 's', groupId: 'job/g', contextTokens: 1_000 };
  const { acquireId } = await test.acquire(worker, wish);
  const mends = await audit.look(test.pool, [], []);
  const findings = mends.map(({ finding }) => finding);
  expect(findings.map(({ check, where }) => `${check} ${where}`)).toEqual([
    `server-tokens a:${epoch}`,
    `group-leases job/g on a:${epoch}`,
  ]);
  expect(await audit.withoutBusy(test.pool, findings)).toEqual([]);
  for (const { mend } of mends) expect(await mend()).toEqual({ mended: false });

  await test.redis.hincrby(`${test.root}:servers:tokens`, `a:${epoch}`, 7);
  expect(await audit.withoutBusy(test.pool, findings)).toEqual([findings[0]]);
  expect(await mends[0]!.mend()).toEqual({ mended: true });
  expect(await test.redis.hget(`${test.root}:servers:tokens`, `a:${epoch}`)).toBe('744');
  await test.release(acquireId);
});
