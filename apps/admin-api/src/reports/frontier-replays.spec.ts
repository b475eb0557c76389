import type { FrontierWhatIf, RoundId, TailPolicy, TailPolicyName } from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import { replays, type TrainedRound } from './frontier-replays';

const GROUPS_PER_STEP = 8;
/** Groups of one sample. In each step that waits, one group is ten times as long as the others. */
const GROUPS = new Map(
  Array.from({ length: 48 }, (_, index) => [`g${index}`, [index % GROUPS_PER_STEP === 1 ? 1_000 : 100]]),
);

/**
 * Rounds that took a millisecond for each token of their longest sample, or 100 tokens if they launched more groups.
 */
function recorded(policy: TailPolicy, overProvisions: number[]) {
  const rounds = overProvisions.map((overProvision, index): TrainedRound => {
    const chosen: TailPolicyName = overProvision === 1 ? 'wait' : 'resume';
    const auto = { policy: chosen, reason: 'best' as const, groups: 0, frontier: [] };
    return {
      roundId: `r${index}` as RoundId,
      neededGroups: GROUPS_PER_STEP,
      policy,
      choice: policy.name === 'auto' ? { overProvision, auto } : undefined,
      openedAtMs: 0,
      completedAtMs: overProvision === 1 ? 1_000 : 100,
    };
  });
  const tokens = rounds.map(({ roundId, completedAtMs }) => [roundId, completedAtMs] as const);
  return replays({ groups: GROUPS, longestTokens: new Map(tokens) }, rounds);
}

const formatPolicyName = ({ policy, overProvision, isOwn }: FrontierWhatIf): string =>
  `${policy} ${overProvision}${isOwn ? ', own' : ''}`;
const findStepSeconds = (points: FrontierWhatIf[], name: string): number =>
  points.find((point) => formatPolicyName(point) === name)!.stepSeconds;

describe('the replays of a frontier', () => {
  it('have for `auto` its choice for each round, its last choice alone, and other policies', async () => {
    const points = await recorded({ name: 'auto', maxVersionSpan: 9 }, [1, 1, 1, 1.25, 1.25]);
    expect(points.map(formatPolicyName)).toEqual([
      'auto 1.25, own',
      'resume 1.25',
      'wait 1',
      'regenerate 1.25',
      'regenerate 1.5',
      'resume 1.5',
      'drip 1.25',
      'drip 1.5',
    ]);
    // Steps as recorded: three of five wait for a long group.
    expect(findStepSeconds(points, 'auto 1.25, own')).toBeCloseTo((3 * 1_000 + 2 * 100) / 5 / 1_000);
    expect(findStepSeconds(points, 'wait 1')).toBeCloseTo(1);
    expect(findStepSeconds(points, 'resume 1.25')).toBeLessThan(0.3);
  });

  it('have the last choice once if it waits', async () => {
    const points = await recorded({ name: 'auto' }, [1.25, 1.25, 1.25, 1.25, 1]);
    expect(points.map(formatPolicyName).slice(0, 3)).toEqual(['auto 1, own', 'wait 1', 'regenerate 1.25']);
  });

  it('keep the version span of `auto`, 2 by default, so that cut groups are waited for', async () => {
    const within = async (maxVersionSpan?: number) =>
      findStepSeconds(await recorded({ name: 'auto', maxVersionSpan }, [1, 1, 1, 1.25, 1.25]), 'resume 1.5');
    expect(await within()).toBe(await within(2));
    expect(await within()).toBeGreaterThan(await within(9));
  });

  it('have the policy of the job once, and nothing under `fixed-concurrency`', async () => {
    const points = await recorded({ name: 'resume', overProvision: 1.25 }, [1.25, 1.25, 1.25]);
    expect(points.filter(({ policy }) => policy === 'resume').map(formatPolicyName)).toEqual([
      'resume 1.25, own',
      'resume 1.5',
    ]);
    const concurrent: TailPolicy = { name: 'fixed-concurrency', overProvision: 1.25, concurrency: 8 };
    expect(await recorded(concurrent, [1.25, 1.25, 1.25])).toEqual([]);
    expect(await recorded({ name: 'auto' }, [])).toEqual([]);
  });
});
