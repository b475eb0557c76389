import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { readEvents } from '../events/recorded-run';
import { recordedPolicy, recordedSeconds, replay } from '../events/what-if';
import { mean } from '../experiments/run-setup';
import { svgPlot } from '../output/plot';
import { screenTable } from '../output/write-output';
import { addFleetOptions, fleetOf, type FleetOptions } from './fleet-options';
import { someNumber, wholeNumber } from './numbers';
import { drawn, WRITTEN_TO } from './outputs';

interface Options extends Omit<FleetOptions, 'speed'> {
  steps: number;
  groups: number;
  samples: number;
  overProvision: number;
  speed: number;
  out: string;
}

/** `<dist>/lab/laboratory/src/commands` to the launcher. */
const TRAINER = join(__dirname, '../../../demo/src/main.js');

export function validateCommand(program: Command): void {
  const command = program
    .command('validate')
    .description('runs the same lengths in the real services and in the simulation, and compares the step times')
    .option('--steps <n>', 'training steps', wholeNumber(1, 1_000), 8)
    .option('--groups <n>', 'groups of a step', wholeNumber(1, 1_000), 16)
    .option('--samples <n>', 'samples of a group', wholeNumber(1, 64), 4)
    .option('--over-provision <x>', 'launched / needed groups', someNumber(1), 1.375)
    .option('--speed <x>', 'simulated seconds per second', someNumber(0.1), 25)
    .option('--out <folder>', 'folder of the plot', 'laboratory-output');
  addFleetOptions(command).action(async (options: Options) => {
    const rows: string[][] = [];
    const files: Record<string, string> = {};
    for (const policy of ['wait', 'regenerate', 'resume'] as const) {
      const events = await runServices(policy, options);
      const run = readEvents(events, policy);
      const real = recordedSeconds(run, options.speed);
      const { outcome } = replay(run, fleetOf(options), recordedPolicy(run), 'same');
      const simulated = outcome.steps.map(({ seconds }) => seconds);
      real.forEach((seconds, index) => {
        rows.push([
          policy,
          `${index + 1}`,
          seconds.toFixed(1),
          (simulated[index] ?? 0).toFixed(1),
          ratio(simulated[index], seconds),
        ]);
      });
      rows.push([
        policy,
        'mean',
        mean(real).toFixed(1),
        mean(simulated).toFixed(1),
        ratio(mean(simulated), mean(real)),
      ]);
      files[`validate-${policy}.svg`] = svgPlot({
        title: `Services and simulation: ${policy}`,
        xLabel: 'step',
        yLabel: 'seconds of simulated time',
        series: Object.entries({ services: real, simulation: simulated }).map(([name, seconds]) => ({
          name,
          points: seconds.map((y, index) => ({ x: index + 1, y })),
        })),
      });
    }
    console.log(screenTable({ head: ['policy', 'step', 'services, s', 'simulation, s', 'ratio'], rows }));
    console.log(`${WRITTEN_TO} ${await drawn(options.out, files)}`);
  });
}

/** The whole system as processes on this machine; returns its events. */
async function runServices(policy: string, options: Options): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'broomwagon-validate-'));
  try {
    const events = join(folder, 'events.jsonl');
    const values = {
      'record-events': events,
      'tail-policy': policy,
      'over-provision': policy === 'wait' ? 1 : options.overProvision,
      engines: options.servers,
      steps: options.steps,
      groups: options.groups,
      samples: options.samples,
      speed: options.speed,
    };
    const given = Object.entries(values).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    console.error(`npm start -- --once --no-baseline ${given.join(' ')}`);
    const trainer = spawn(process.execPath, [TRAINER, '--once', '--no-baseline', ...given], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = (await once(trainer, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`The services ended with status ${code}`);
    return await readFile(events, 'utf8');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function ratio(one = 0, other: number): string {
  return (one / other).toFixed(2);
}
