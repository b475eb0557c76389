import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Report } from '../lab/demo/src/report/report';
import { useStart } from './system/start-runs';

/**
 * Options with enough steps for two long rounds, and slow enough that engines do not run far before a stop arrives.
 * `drip` was 2.2 to 2.3 times as fast as `wait` at a load of 9 to 14 on two cores, so 1.5 leaves a margin.
 */
// On a busy machine a call of a service takes long in the time of fast engines, and fewer responses run side by side.
const SPEED_UP =
  '--once --steps 12 --groups 16 --samples 4 --engines 2 --tail-policy drip --over-provision 1.375 --speed 60'.split(
    ' ',
  );
const runs = useStart();

it('`npm start` trains at least 1.5 times as fast as wait by the clocks of the engines, and reports the costs', async () => {
  const file = join(runs.folder, 'report.json');
  const run = await runs.start(...SPEED_UP, '--report', file, '--results', join(runs.folder, 'results.jsonl'));
  const { code } = await run.exited;
  expect(code, runs.output()).toBe(0);
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
  expect(report.simulatedSpeedup).toBeGreaterThanOrEqual(1.5);
  expect(report.engineSeconds! * report.simulatedSpeedup!).toBeCloseTo(report.baseline!.engineSeconds!, 6);
  // No tokens are wasted, and all started samples are trained.
  expect(report.cost).toMatchObject({ lengthBias: expect.closeTo(1, 6) as number, waste: { tokens: 0 } });
  expect(report.cost.offPolicyShare).toBeGreaterThan(0);
  expect(report.cost.batchVariation).toBeGreaterThan(report.baseline!.cost.batchVariation);
  expect(report.baseline!.cost).toMatchObject({ offPolicyShare: 0, waste: { tokens: 0 } });
  for (const step of [...report.steps, ...report.baseline!.steps]) {
    expect(step.meanGenerationSeconds).toBeGreaterThan(0);
    // Times that are all equal have a mean that may be rounded up.
    expect(step.slowestGenerationSeconds).toBeGreaterThan(step.meanGenerationSeconds - 1e-9);
    expect(step.engineSeconds).toBeGreaterThan(0);
    expect(step.tailShare).toBeCloseTo(step.tailSeconds / step.wallSeconds, 9);
  }
  const tailSeconds = report.steps.reduce((sum, step) => sum + step.tailSeconds, 0);
  expect(report.tailShare).toBeCloseTo(tailSeconds / report.wallSeconds, 9);
  expect(report.baseline!.tailShare).toBeGreaterThan(0);
  expect(runs.output()).toMatch(/By the clocks of the engines/);
});
