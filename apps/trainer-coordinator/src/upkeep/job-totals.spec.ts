import { BroomwagonError, WASTE_REASONS, type JobStatus } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import { addCounters, summariseLedger } from '@broomwagon/policies';
import type { RoundStore, StoredLedger } from '@broomwagon/state';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { LedgerMetrics } from '../ledger/ledger.metrics';
import type { LedgerService } from '../ledger/ledger.service';
import { JobTotals } from './job-totals';

const POOL = 'p';
/** Half of the tokens are thrown away, and all others are of older weights. */
const LEDGER: StoredLedger = {
  counters: {
    ...Object.fromEntries(WASTE_REASONS.map((reason) => [`waste.${reason}`, 5])),
    'trained.samples': 1,
    'trained.tokens': 5 * WASTE_REASONS.length,
    'trained.offPolicyTokens': 5 * WASTE_REASONS.length,
  },
  open: {},
  closed: {},
  policy: { name: 'resume', overProvision: 1, maxOffPolicyShare: 0.5 },
};

/** A ledger whose ratios all depend on the number of cut tokens. */
function ledgerWith(cutTokens: number): StoredLedger {
  return {
    counters: {
      'waste.cut': cutTokens,
      'ended.length.40': 1 + cutTokens,
      'trained.length.40': 1,
      'trained.length.80': cutTokens,
      'trained.tokens': 1_000,
      'trained.offPolicyTokens': cutTokens,
    },
    open: { 'cut.length.60': cutTokens },
    closed: {},
  };
}

function openTotals(metricsJobs = 20, ledgerOf = (_job: string): StoredLedger => LEDGER) {
  const metrics = new Metrics('test');
  const jobs = new Map<string, number>();
  const open = new Set<string>();
  const reads: string[] = [];
  const rounds = {
    allJobs: async (_: string, openOnly: boolean) => (openOnly ? [...open] : [...jobs.keys()]),
    jobStatus: async (_: string, { job }: { job: string }) => {
      reads.push(job);
      if (!jobs.has(job)) throw new BroomwagonError('JOB_NOT_FOUND', `There is no job ${job}`);
      const longtail = { groups: 0, settlingGroups: 0 };
      const groups = { submittedGroups: 0, trainedGroups: 0, failedGroups: 0, droppedGroups: 0 };
      return { job, requests: { trained: jobs.get(job)! }, longtail, ...groups } as unknown as JobStatus;
    },
  };
  const ledgers = { stored: async (_: string, job: string) => ledgerOf(job) };
  const totals = new JobTotals(
    rounds as unknown as RoundStore,
    ledgers as unknown as LedgerService,
    new CoordinatorMetrics(metrics),
    new LedgerMetrics(metrics, Object.assign(new CoordinatorConfig(), { metricsJobs })),
  );
  const read = async (nowMs: number) => {
    reads.length = 0;
    await totals.read(POOL, nowMs);
    return [...reads];
  };
  return { jobs, open, read, text: () => metrics.text() };
}

it('reads open and recently changed jobs, and shows the sum of all jobs', async () => {
  const { jobs, open, read, text } = openTotals();
  for (let job = 0; job < 100; job++) jobs.set(`old-${job}`, 1);
  jobs.set('live', 10);
  open.add('live');
  const beganAtMs = 1_000_000_000;
  expect(await read(beganAtMs)).toHaveLength(101);
  expect(await text()).toMatch(/requests{pool="p",state="trained",app="test"} 110/);
  jobs.set('live', 20);
  expect(await read(beganAtMs + 61_000)).toEqual(['live']);
  expect(await text()).toMatch(/requests{pool="p",state="trained",app="test"} 120/);
  // After its close, a job is read until its counts stop changing.
  open.clear();
  jobs.set('live', 30);
  expect(await read(beganAtMs + 66_000)).toEqual(['live']);
  expect(await read(beganAtMs + 200_000)).toEqual([]);
  expect(await text()).toMatch(/requests{pool="p",state="trained",app="test"} 130/);
});

it('reads all jobs again at once when the first read has failed', async () => {
  let isAway = true;
  const { jobs, read, text } = openTotals(20, () => {
    if (isAway) throw new BroomwagonError('UNAVAILABLE', 'Redis is away');
    return LEDGER;
  });
  jobs.set('closed', 7);
  await expect(read(1_000_000_000)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  isAway = false;
  await read(1_000_005_000);
  expect(await text()).toMatch(/requests{pool="p",state="trained",app="test"} 7/);
});

it('removes the gauges of a job when it is deleted, or idle for an hour', async () => {
  const { jobs, open, read, text } = openTotals();
  jobs.set('gone', 1).set('idle', 1).set('live', 1);
  open.add('live');
  await read(1_000_000_000);
  for (const job of jobs.keys()) expect(await text()).toContain(`training_job="${job}"`);
  jobs.delete('gone');
  jobs.set('live', 2);
  await read(1_003_700_000);
  expect(await text()).not.toContain('training_job="gone"');
  expect(await text()).toMatch(/pool_ledger_waste_ratio\{pool="p",app="test"\} 0.5/);
  expect(await text()).not.toContain('training_job="idle"');
  expect(await text()).toContain('training_job="live"');
});

it('gives labels of their own to the jobs that changed last, and sums the others', async () => {
  const { jobs, open, read, text } = openTotals(2);
  for (const job of ['a', 'b', 'c', 'd']) {
    jobs.set(job, 1);
    open.add(job);
  }
  await read(1_000_000_000);
  for (const job of ['c', 'd']) jobs.set(job, 2);
  await read(1_000_005_000);
  const page = await text();
  const labels = new Set([...page.matchAll(/ledger_\w+\{pool="p",training_job="(\w+)"/g)].map(([, job]) => job));
  expect(labels).toEqual(new Set(['c', 'd', 'other']));
  expect(page).toMatch(/ledger_wasted_tokens\{pool="p",training_job="other",reason="cut",app="test"\} 10/);
  expect(page).toMatch(/ledger_alarms\{pool="p",training_job="other",bound="offPolicyShare",app="test"\} 2/);
  expect(page).toMatch(/ledger_alarms\{pool="p",training_job="other",bound="versionSpan",app="test"\} 0/);
  expect(page).not.toMatch(/ledger_waste_ratio\{pool="p",training_job="other"/);
});

it('shows the ratios of all ledgers together, however jobs changed, were deleted and returned', async () => {
  const job = fc.constantFrom('a', 'b', 'c');
  const step = fc.record({ job, cut: fc.option(fc.nat(1_000)), isLater: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const buildLedger = (name: string) => ledgerWith(jobs.get(name)!);
      const { jobs, read, text } = openTotals(20, buildLedger);
      let nowMs = 1_000_000_000;
      for (const { job: name, cut, isLater } of steps) {
        if (cut === null) jobs.delete(name);
        else jobs.set(name, cut);
        // Only the longer interval reads jobs that are new or have not changed recently.
        await read((nowMs += isLater ? 300_000 : 5_000));
      }
      await read((nowMs += 300_000));
      const ledgers = [...jobs.keys()].map(buildLedger);
      const sum = (part: 'counters' | 'open') => addCounters({}, ...ledgers.map((ledger) => ledger[part]));
      const { lengthBias, offPolicyShare, waste } = summariseLedger(sum('counters'), sum('open'));
      const page = await text();
      const shown = (name: string) =>
        Number(new RegExp(`pool_ledger_${name}_ratio{pool="p",app="test"} (.*)`).exec(page)![1]);
      expect({ lengthBias: shown('length_bias'), offPolicyShare: shown('off_policy'), waste: shown('waste') }).toEqual({
        lengthBias,
        offPolicyShare,
        waste: waste.share,
      });
    }),
    { numRuns: 50 },
  );
});
