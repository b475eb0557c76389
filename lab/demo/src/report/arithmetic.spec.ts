import { describe, expect, it } from 'vitest';
import { sumEngineSeconds, idleShare, invalidities, computeSpeedup, summarize, computeTailShare } from './arithmetic';
import type { StepReport } from '../../../reference-trainer/src/loop/step-report';

const step = (part: Partial<StepReport>): StepReport => ({
  step: 1,
  roundId: 'r',
  kind: 'short',
  groupsAccepted: 4,
  requestsDone: 8,
  requestsCut: 2,
  groupsRequeued: 1,
  wallSeconds: 1,
  idleShare: 0.5,
  tailSeconds: 0.25,
  tailShare: 0.25,
  meanGenerationSeconds: 0.5,
  slowestGenerationSeconds: 1,
  engineSeconds: 20,
  ...part,
});
const totals = {
  submitted: 8,
  accepted: 8,
  trained: 8,
  unfinished: 0,
  failed: 0,
  dropped: 0,
  lost: 0,
  duplicated: 0,
  faulty: 0,
};

describe('report arithmetic', () => {
  it('counts time that is not busy as idle, within 0 and 1', () => {
    expect(idleShare(6, 8)).toBe(0.25);
    expect(idleShare(9, 8)).toBe(0);
    expect(idleShare(0, 0)).toBeNull();
  });

  it('sums steps by kind and weighs idle shares by time', () => {
    const rows = summarize([
      step({ wallSeconds: 1, idleShare: 0.2 }),
      step({ wallSeconds: 3, idleShare: 0.6, tailSeconds: 0.75 }),
      step({ kind: 'long', wallSeconds: 4, idleShare: null, requestsCut: 0 }),
    ]);
    expect(rows.map(({ kind, steps }) => [kind, steps])).toEqual([
      ['short', 2],
      ['long', 1],
      ['all', 3],
    ]);
    expect(rows[0]).toMatchObject({ meanWallSeconds: 2, meanTailSeconds: 0.5, groupsAccepted: 8, requestsCut: 4 });
    expect(rows[0]?.idleShare).toBeCloseTo(0.5);
    expect(rows[0]).toMatchObject({ meanGenerationSeconds: 0.5, slowestGenerationSeconds: 1, tailShare: 0.25 });
    expect(rows[1]?.idleShare).toBeNull();
    expect(rows[2]).toMatchObject({ wallSeconds: 8, groupsRequeued: 3 });
  });

  it('takes the share of the tail from sums, not from the shares of the steps', () => {
    expect(computeTailShare([step({}), step({ wallSeconds: 3, tailSeconds: 1.75 })])).toBe(0.5);
    expect(computeTailShare([])).toBe(0);
  });

  it('has no row of all steps when there is one kind', () => {
    expect(summarize([step({})]).map(({ kind }) => kind)).toEqual(['short']);
  });

  it('computes the speed-up from totals', () => {
    expect(computeSpeedup('wallSeconds', { wallSeconds: 4 }, { wallSeconds: 10 })).toBe(2.5);
    expect(computeSpeedup('wallSeconds', { wallSeconds: 4 }, null)).toBeNull();
    const engineSeconds = sumEngineSeconds([step({}), step({ engineSeconds: 5 })]);
    expect(computeSpeedup('engineSeconds', { engineSeconds }, { engineSeconds: 50 })).toBe(2);
    expect(sumEngineSeconds([step({}), step({ engineSeconds: null })])).toBeNull();
    expect(computeSpeedup('engineSeconds', { engineSeconds: null }, { engineSeconds: null })).toBeNull();
  });

  it('finds a report invalid above 5 % clock lag, or with lost, duplicated or faulty results', () => {
    const run = { policy: 'resume' as const, totals, otherLengths: null };
    expect(invalidities(0.05, [run])).toEqual([]);
    expect(invalidities(null, [run])).toEqual([]);
    expect(invalidities(0.051, [run])).toEqual([expect.stringMatching(/invalid.*5\.1 %.*--speed/)]);
    for (const wrong of ['lost', 'duplicated', 'faulty']) {
      expect(invalidities(0, [run, { ...run, policy: 'wait', totals: { ...totals, [wrong]: 1 } }])).toHaveLength(1);
    }
  });

  it('finds a comparison invalid whose samples have other lengths than were asked for', () => {
    const run = { policy: 'resume' as const, totals, otherLengths: 0 };
    expect(invalidities(null, [run])).toEqual([]);
    const problems = invalidities(null, [run, { ...run, policy: 'auto', otherLengths: 3 }]);
    expect(problems).toEqual([expect.stringMatching(/under auto, 3 samples have other lengths.*equal-lengths/)]);
  });
});
