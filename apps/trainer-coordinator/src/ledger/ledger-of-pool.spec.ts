import { setImmediate as nextTurn } from 'node:timers/promises';
import { BroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import type { InspectionStore, LedgerStore, RoundStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { toLedgerReply, LedgerService } from './ledger.service';

it('adds the ledgers of thousands of jobs, some at a time, without a job that is deleted meanwhile', async () => {
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

it('raises alarms at the bounds of `auto`, its default version span included', () => {
  const counters = {
    'trained.length.10': 1,
    'ended.length.10': 1,
    'ended.length.40': 1,
    'trained.samples': 1,
    'trained.tokens': 10,
    'trained.span.3': 1,
    'waste.cut': 10,
  };
  const limits = (policy: TailPolicy) =>
    toLedgerReply({ counters, open: {}, closed: {}, policy }).alarms.map(({ bound, limit, state }) => [
      bound,
      limit,
      state,
    ]);
  expect(limits({ name: 'auto', maxLengthBias: 0.1, maxWaste: 0.2 })).toEqual([
    ['lengthBias', 0.1, 'over'],
    ['versionSpan', 2, 'over'],
    ['wasteShare', 0.2, 'over'],
  ]);
  expect(limits({ name: 'auto', maxVersionSpan: 3, alarms: { wasteShare: 0.9 } })).toEqual([
    ['lengthBias', 0.05, 'over'],
    ['versionSpan', 3, 'near'],
  ]);
  expect(limits({ name: 'wait' })).toEqual([['lengthBias', 0.05, 'over']]);
});
