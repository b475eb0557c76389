import { expect, it } from 'vitest';
import type { AutoChoice, AutoRow } from '@broomwagon/contracts';
import { AutoChoices, autoText } from './auto-report';

const row = (policy: AutoRow['policy'], overProvision: number, speed: number, offPolicyShare: number): AutoRow => ({
  policy,
  overProvision,
  speed,
  offPolicyShare,
  versionSpan: 1,
  lengthBias: 1,
  wasteShare: 0,
  breaks: offPolicyShare > 0.3 ? ['maxOffPolicyShare'] : [],
});
const FRONTIER = [
  row('wait', 1, 1, 0),
  row('resume', 1.125, 0.9, 0.1),
  row('resume', 1.25, 2, 0.2),
  row('drip', 2, 3, 0.5),
];

it('reports the choices of auto with reasons, and the policies that no other beats', () => {
  const choices = new AutoChoices();
  const round = (step: number, overProvision: number, auto?: AutoChoice): void =>
    choices.add({ step, choice: { overProvision, auto } });
  expect(choices.report()).toBeNull();
  round(3, 1.25, { policy: 'resume', reason: 'best', groups: 64, frontier: FRONTIER });
  round(1, 1, { policy: 'wait', reason: 'unknown', groups: 0, frontier: [] });
  // The status of a round is read many times.
  round(2, 1, { policy: 'wait', reason: 'unknown', groups: 16, frontier: [] });
  round(2, 1, { policy: 'wait', reason: 'unknown', groups: 16, frontier: [] });
  round(4, 1.5);
  const report = choices.report()!;
  expect(report.choices.map(({ step }) => step)).toEqual([1, 2, 3]);
  expect(report.frontier).toEqual(FRONTIER);
  const [chosen, , ...predicted] = autoText(report);
  expect(chosen).toBe('auto chose: steps 1 to 2 wait (unknown), step 3 resume 1.25 (best)');
  expect(predicted.map((line) => line.trim().replaceAll(/ +/g, ' '))).toEqual([
    'wait 1.00x, off-policy 0.0 %, span 1',
    'resume 1.25 2.00x, off-policy 20.0 %, span 1',
    'drip 2 3.00x, off-policy 50.0 %, span 1 * maxOffPolicyShare',
  ]);
  expect(autoText({ ...report, frontier: [] })).toHaveLength(1);
});

it('reports the steps in which a bound was broken, and the reaction of auto', () => {
  const choices = new AutoChoices();
  const measured: AutoChoice['broken'] = { measured: ['maxWaste', 'maxLengthBias'] };
  const broken = [undefined, measured, measured, undefined, measured, { predicted: ['maxVersionSpan'] }] as const;
  broken.forEach((one, index) => {
    const auto: AutoChoice = {
      policy: 'wait',
      reason: 'late',
      broken: one as AutoChoice['broken'],
      groups: 64,
      frontier: [],
    };
    choices.add({ step: index + 1, choice: { overProvision: 1, auto } });
  });
  const report = choices.report()!;
  expect(report.choices.map((choice) => choice.broken)).toEqual(broken);
  const [, ...said] = autoText(report);
  expect(said).toEqual([
    expect.stringMatching(
      /went back by a step.*: steps 2 to 3 maxWaste and maxLengthBias, step 5 maxWaste and maxLengthBias$/,
    ),
    expect.stringMatching(/chose another.*: step 6 maxVersionSpan$/),
  ]);
});
