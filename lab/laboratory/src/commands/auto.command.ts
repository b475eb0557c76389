import { writeFile } from 'node:fs/promises';
import { Option, type Command } from 'commander';
import { type AutoComparison, compareAuto, fixedPolicies } from '../auto/compare-auto';
import { Progress } from '../output/progress';
import { screenTable } from '../output/write-output';
import { SETUPS, type SetupName } from '../parameters';
import { numberList, wholeNumber } from './numbers';

interface Options {
  setup: SetupName[];
  overProvisions: number[];
  steps: number;
  seeds: number;
  drift?: boolean;
  json?: string;
}

const percent = (share: number): string => `${Math.round(100 * share)} %`;

export function autoCommand(program: Command): void {
  program
    .command('auto')
    .description('the policy `auto` against the best fixed policy that keeps its bounds, from step 10 on')
    .addOption(
      new Option('--setup <name...>', 'engines and lengths')
        .choices(Object.keys(SETUPS))
        .default(Object.keys(SETUPS), 'all'),
    )
    .option(
      '--over-provisions <list>',
      'launched / needed groups of fixed policies',
      numberList(1),
      [1.125, 1.25, 1.375, 1.5, 1.75, 2],
    )
    .option('--steps <n>', 'training steps of a run', wholeNumber(12, 100_000), 60)
    .option('--seeds <n>', 'runs of each policy, each with another seed', wholeNumber(1, 100), 5)
    .option('--drift', 'lengths grow: their mean doubles over 50 steps')
    .option('--json <file>', 'write the numbers to a file')
    .action(async ({ setup: names, overProvisions, steps, seeds, drift: drifts = false, json }: Options) => {
      const runs = (1 + fixedPolicies(SETUPS[names[0]!], overProvisions).length) * seeds;
      const progress = new Progress(names.length * runs, 'auto');
      const choices = { steps, seeds: Array.from({ length: seeds }, (_, index) => index + 1), overProvisions, drifts };
      const found = names.map((name) => ({ name, ...compareAuto(SETUPS[name], choices, progress) }));
      progress.stop();
      const lengths = drifts ? ', lengths that double over 50 steps' : '';
      console.log(`${steps} steps, ${seeds} seeds${lengths}; steps from the tenth on:`);
      console.log(screenTable({ head: HEAD, rows: found.map((one) => rowOf(one, drifts)) }));
      if (json !== undefined) await writeFile(json, `${JSON.stringify(found, null, 2)}\n`);
    });
}

const HEAD = ['setup', 'wait', 'auto', 'best fixed', '', 'auto / best', 'worst seed', 'off-policy', 'span', 'bias', ''];
/** What `auto` may lose against the best fixed policy. */
const LOSS = { steady: 0.05, drifting: 0.1 };

function rowOf(found: AutoComparison & { name: string }, drifts: boolean): string[] {
  const { name, waitSeconds, autoSeconds, best, ratio, worstRatio, offPolicyShare, versionSpan, lengthBias } = found;
  return [
    name,
    `${Math.round(waitSeconds)} s`,
    `${(waitSeconds / autoSeconds).toFixed(2)}x`,
    `${(waitSeconds / best.seconds).toFixed(2)}x`,
    best.name,
    ratio.toFixed(3),
    worstRatio.toFixed(3),
    percent(offPolicyShare),
    `${versionSpan}`,
    lengthBias.toFixed(3),
    ratio >= 1 - (drifts ? LOSS.drifting : LOSS.steady) ? 'holds' : '**no**',
  ];
}
