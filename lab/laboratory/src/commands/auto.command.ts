import { InvalidArgumentError, Option, type Command } from 'commander';
import {
  type AutoComparison,
  type Bounds,
  compareAuto,
  fixedPolicies,
  measureRun,
  formatPolicyName,
} from '../auto/compare-auto';
import { KeptRuns } from '../auto/kept-runs';
import { Progress } from '../output/progress';
import { screenTable } from '../output/write-output';
import { type Setup, SETUPS, type SetupName } from '../parameters';
import { numberList, someNumber, wholeNumber } from './numbers';

interface Options extends Bounds {
  setup: SetupName[];
  overProvisions: number[];
  steps: number;
  seeds: number;
  scale: number;
  drift?: boolean;
  runs?: string;
}

const share = someNumber(0, 1);
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
    .option('--scale <x>', 'share of the servers of each setup, and of its groups per step', scale, 1)
    .option('--max-off-policy-share <x>', 'bound of `auto`, as the next two', share)
    .option('--max-length-bias <x>', 'allows `regenerate`', share)
    .option('--max-waste <x>', 'tokens thrown away / these and the trained ones', share)
    .option('--drift', 'lengths double over 50 steps, up to the cap')
    .option('--runs <file>', 'add each run to this file, and do not repeat those that are in it')
    .action(
      ({
        setup: names,
        overProvisions,
        steps,
        seeds,
        scale: size,
        drift: drifts = false,
        runs: file,
        ...given
      }: Options) => {
        const bounds = given;
        const runs = (1 + fixedPolicies(SETUPS[names[0]!], { overProvisions, bounds }).length) * seeds;
        const progress = new Progress(names.length * runs, 'auto');
        const choices = {
          steps,
          seeds: Array.from({ length: seeds }, (_, index) => index + 1),
          overProvisions,
          drifts,
          bounds,
        };
        const kept = new KeptRuns(file);
        const found = names.map((name) => {
          const comparison = compareAuto(scaled(SETUPS[name], size), choices, (setup, run) => {
            progress.doing(`${name}, ${formatPolicyName(run.policy)}`);
            const measured = kept.once({ name, scale: size, ...run }, () => measureRun(setup, run));
            progress.done();
            return measured;
          });
          return { name, ...comparison };
        });
        progress.stop();
        const scaling = size === 1 ? '' : `, ${size} of the servers and of the groups per step`;
        const lengths = drifts ? ', lengths that double over 50 steps' : '';
        console.log(`${steps} steps, ${seeds} seeds${scaling}${lengths}; steps from the tenth on:`);
        console.log(screenTable({ head: HEAD, rows: found.map((one) => toRow(one, drifts)) }));
      },
    );
}

/** Reads a number above 0 and at most 1. */
function scale(text: string): number {
  const value = someNumber(0)(text);
  if (value === 0 || value > 1) throw new InvalidArgumentError('Expected a number above 0 and up to 1.');
  return value;
}

function scaled(setup: Setup, share: number): Setup {
  const of = (count: number): number => Math.max(1, Math.round(share * count));
  return { ...setup, servers: of(setup.servers), groupsPerStep: of(setup.groupsPerStep) };
}

const HEAD = [
  'setup',
  'wait',
  'auto',
  'best fixed',
  '',
  'auto / best',
  'worst seed',
  'off-policy',
  'span',
  'bias',
  'ledger bias',
  'waste',
  '',
];
/** Share of speed that `auto` may lose against the best fixed policy. */
const LOSS = { steady: 0.05, drifting: 0.1 };

function toRow(found: AutoComparison & { name: string }, drifts: boolean): string[] {
  const { name, waitSeconds, autoSeconds, best, ratio, worstRatio, offPolicyShare, versionSpan } = found;
  const { lengthBias, ledgerBias, wasteShare } = found;
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
    ledgerBias.toFixed(3),
    percent(wasteShare),
    ratio >= 1 - (drifts ? LOSS.drifting : LOSS.steady) ? 'holds' : '**no**',
  ];
}
