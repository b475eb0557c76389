import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { parseOptions } from '../../../demo/src/options/parse-options';
import { toTailPolicy } from '../../../demo/src/options/tail-options';
import type { Report } from '../../../demo/src/report/report';
import { readEvents } from '../events/recorded-run';
import { recordedSeconds, simulateRecording } from '../events/simulate-recording';
import { svgPlot } from '../output/plot';
import { screenTable, drawn, WRITTEN_TO } from '../output/write-output';
import {
  meanTable,
  stepTable,
  VALIDATED_POLICIES,
  type ValidatedPolicy,
  type ValidatedRun,
} from '../validation/validated-runs';
import { addFleetOptions, toFleet, type FleetOptions } from './fleet-options';
import { someNumber, wholeNumber } from './numbers';

interface Options extends FleetOptions {
  policy: ValidatedPolicy[];
  steps: number;
  groups: number;
  samples: number;
  overProvision: number;
  out: string;
}

/** Path of the launcher, from `<dist>/lab/laboratory/src/commands`. */
const TRAINER = join(__dirname, '../../../demo/src/main.js');
const DIFFERING =
  'auto and adaptive policies choose by what they have measured, so services and simulation may choose differently: ' +
  'compare their speeds, not their steps.';

export function validateCommand(program: Command, services: typeof runServices = runServices): void {
  const command = program
    .command('validate')
    .description('runs the same lengths in the real services and in the simulation, and compares the step times')
    .addOption(
      new Option('--policy <name...>', 'policies to run')
        .choices(Object.keys(VALIDATED_POLICIES))
        .default(['wait', 'regenerate', 'resume']),
    )
    .option('--steps <n>', 'training steps', wholeNumber(1, 1_000), 8)
    .option('--groups <n>', 'groups of a step', wholeNumber(1, 1_000), 16)
    .option('--samples <n>', 'samples of a group', wholeNumber(1, 64), 4)
    .option('--over-provision <x>', 'launched / needed groups', someNumber(1), 1.375)
    .option('--speed <x>', 'simulated seconds per second', someNumber(0.1), 25)
    .option('--out <folder>', 'folder of the plot', 'laboratory-output');
  addFleetOptions(command).action(async (options: Options) => {
    const runs: ValidatedRun[] = [];
    for (const policy of options.policy) runs.push(await validated(policy, options, services));
    console.log(screenTable(stepTable(runs)));
    console.log(screenTable(meanTable(runs)));
    if (options.policy.some((name) => name === 'auto' || name.endsWith('-adaptive'))) console.log(DIFFERING);
    const plots = runs.map((run) => [`validate-${run.policy}.svg`, buildPlot(run)]);
    console.log(`${WRITTEN_TO} ${await drawn(options.out, Object.fromEntries(plots) as Record<string, string>)}`);
  });
}

/** Runs one policy in the services, and the same lengths under the same policy in the simulation. */
async function validated(
  policy: ValidatedPolicy,
  options: Options,
  services: typeof runServices,
): Promise<ValidatedRun> {
  const given = startOptions(policy, options);
  const { events, report } = await services(given);
  const run = readEvents(events, policy);
  const { outcome } = simulateRecording(run, toFleet(options), toTailPolicy(parseOptions(given)), 'same');
  return {
    policy,
    services: recordedSeconds(run, options.speed),
    engines: report.steps.map(({ engineSeconds }) => engineSeconds ?? NaN),
    simulation: outcome.steps.map(({ seconds }) => seconds),
    clockLagShare: report.clockLagShare ?? 0,
  };
}

function startOptions(policy: ValidatedPolicy, options: Options): string[] {
  const values = {
    'over-provision': options.overProvision,
    engines: options.servers,
    steps: options.steps,
    groups: options.groups,
    samples: options.samples,
    speed: options.speed,
  };
  const given = Object.entries(values).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  return ['--once', '--no-baseline', ...VALIDATED_POLICIES[policy], ...given];
}

/** Runs the whole system as processes on this machine, with these options of `npm start`. */
async function runServices(
  given: readonly string[],
): Promise<{ events: string; report: Pick<Report, 'steps' | 'clockLagShare'> }> {
  const folder = await mkdtemp(join(tmpdir(), 'broomwagon-validate-'));
  try {
    const [events, report] = ['events.jsonl', 'report.json'].map((name) => join(folder, name)) as [string, string];
    console.error(`npm start -- ${given.join(' ')}`);
    const files = ['--record-events', events, '--report', report];
    const trainer = spawn(process.execPath, [TRAINER, ...given, ...files], { stdio: ['ignore', 'ignore', 'inherit'] });
    const [code] = (await once(trainer, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`The services ended with status ${code}`);
    return {
      events: await readFile(events, 'utf8'),
      report: JSON.parse(await readFile(report, 'utf8')) as Report,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function buildPlot({ policy, services, simulation }: ValidatedRun): string {
  return svgPlot({
    title: `Services and simulation: ${policy}`,
    xLabel: 'step',
    yLabel: 'seconds of simulated time',
    series: Object.entries({ services, simulation }).map(([name, seconds]) => ({
      name,
      points: seconds.map((y, index) => ({ x: index + 1, y })),
    })),
  });
}
