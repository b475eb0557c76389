import { setImmediate as nextTurn } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';
import type { InspectionStore, LedgerStore, RoundStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { LedgerService } from './ledger.service';

it('adds the ledgers of thousands of jobs, some at a time, without one that is deleted meanwhile', async () => {
  const jobs = Array.from({ length: 10_000 }, (_, index) => `job-${index}`);
  let reading = 0;
  let most = 0;
  const read = async (_pool: string, { job }: { job: string }) => {
    most = Math.max(most, (reading += 1));
    await nextTurn();
    reading -= 1;
    if (job === 'job-77') throw new BroomwagonError('JOB_NOT_FOUND', 'It is deleted');
    return { counters: { 'waste.cut': 8 }, open: {}, closed: {} };
  };
  const service = new LedgerService(
    { read } as unknown as LedgerStore,
    {} as InspectionStore,
    { allJobs: async () => jobs } as unknown as RoundStore,
  );
  const { jobs: counted, summary } = await service.ofPool('p');
  expect([counted, summary.waste.tokens]).toEqual([9_999, 8 * 9_999]);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(64);
});
