import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TAIL_POLICIES } from '@broomwagon/contracts';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { parseOptions } from '../../../demo/src/options/parse-options';
import { toTailPolicy } from '../../../demo/src/options/tail-options';
import type { StepReport } from '../../../reference-trainer/src/loop/step-report';
import { VALIDATED_POLICIES, type ValidatedPolicy } from '../validation/validated-runs';
import { documentedCalls, printed, parseRows } from './commands.fixture';
import { validateCommand } from './validate.command';

const NAMES = Object.keys(VALIDATED_POLICIES) as ValidatedPolicy[];

/** Events of two rounds of one group, each of `roundMs` milliseconds. */
function formatEvents(policy: string, roundMs: number): string {
  const events = [1, 2].flatMap((step) => {
    const round = { job: 'job', roundId: `r${step}`, step };
    const opened = { ...round, policy, kind: 'short', neededGroups: 1, newGroups: 1, takeGroups: 0 };
    const sample = { roundId: `r${step}`, requestId: `job/g${step}/0`, tokens: 900, finishReason: 'stop' };
    return [
      { type: 'round.opened', atMs: step * 10_000, ...opened },
      { type: 'request.finished', atMs: step * 10_000 + roundMs, ...sample },
      { type: 'round.completed', atMs: step * 10_000 + roundMs, ...round },
    ];
  });
  return events.map((event) => JSON.stringify(event)).join('\n');
}

it('runs each named policy in the services and in the simulation, and compares steps and speeds', async () => {
  const out = mkdtempSync(join(tmpdir(), 'broomwagon-validate-'));
  const started: (readonly string[])[] = [];
  const services = (given: readonly string[]) => {
    started.push(given);
    const { name } = toTailPolicy(parseOptions(given));
    const steps = [{ engineSeconds: 30 }, { engineSeconds: null }] as StepReport[];
    const events = formatEvents(name, name === 'wait' ? 2_000 : 1_000);
    return Promise.resolve({ events, report: { steps, clockLagShare: 0.015 } });
  };
  try {
    const command = (program: Command) => validateCommand(program, services);
    const options = ['--policy', 'wait', 'auto', '--groups', '1', '--samples', '1', '--speed', '20', '--out', out];
    const lines = await printed(command, ...options);
    expect(started.map((given) => toTailPolicy(parseOptions(given)))).toEqual([
      { name: 'wait', overProvision: 1 },
      { name: 'auto' },
    ]);
    const text = parseRows(lines).map((cells) => cells.join());
    const [first] = parseRows(lines);
    const [, , , , simulated, ratio] = first!;
    expect(Number(ratio)).toBeCloseTo(Number(simulated) / 40, 2);
    // Both policies launch the same single group, so their simulated times are the same.
    expect(text).toEqual([
      `wait,1,40.0,30.0,${simulated},${ratio}`,
      `wait,2,40.0,,${simulated},${ratio}`,
      `auto,1,20.0,30.0,${simulated},${(Number(simulated) / 20).toFixed(2)}`,
      `auto,2,20.0,,${simulated},${(Number(simulated) / 20).toFixed(2)}`,
      expect.stringMatching(/^policy,/),
      `wait,40.0,,${simulated},${ratio},1.00,,1.00,1.5 %`,
      `auto,20.0,,${simulated},${(Number(simulated) / 20).toFixed(2)},2.00,,1.00,1.5 %`,
    ]);
    expect(lines).toContainEqual(expect.stringMatching(/^auto and adaptive policies choose.*compare their speeds/));
    expect(readdirSync(out).sort()).toEqual(['validate-auto.svg', 'validate-wait.svg']);
  } finally {
    rmSync(out, { recursive: true });
  }
});

it('has every tail policy, and reads the options of its documented calls', () => {
  const tried = NAMES.map((name) => toTailPolicy(parseOptions(VALIDATED_POLICIES[name])).name);
  expect(new Set(tried)).toEqual(new Set(TAIL_POLICIES));
  expect(documentedCalls(validateCommand).map(({ policy }) => policy)).toContainEqual(NAMES);
});
