import type { Command } from 'commander';
import { runSetup } from '../experiments/run-setup';
import { SETUPS } from '../parameters';
import { someNumber, wholeNumber } from './numbers';

interface Options {
  servers: number;
  requests: number;
  steps: number;
  overProvision: number;
  seed: number;
}

const SAMPLES = 16;

export function scaleCommand(program: Command): void {
  program
    .command('scale')
    .description('simulates a large fleet, and prints how long that takes')
    .option('--servers <n>', 'engines of 14B', wholeNumber(1, 100_000), 1_000)
    .option('--requests <n>', `requests of the data set, in groups of ${SAMPLES}`, wholeNumber(SAMPLES, 1e9), 1_000_000)
    .option('--steps <n>', 'training steps of the data set', wholeNumber(1, 100_000), 8)
    .option('--over-provision <n>', 'launched / needed groups, under resume', someNumber(1), 1.25)
    .option('--seed <n>', 'of the lengths', wholeNumber(0, 2 ** 31), 1)
    .action(({ servers, requests, steps, overProvision, seed }: Options) => {
      const groups = Math.ceil(requests / SAMPLES);
      const groupsPerStep = Math.ceil(groups / steps);
      const setup = { ...SETUPS.rollpacker16k, servers, groupsPerStep, samples: SAMPLES };
      const policy = { name: 'resume', overProvision } as const;
      const begun = process.hrtime.bigint();
      const { outcome } = runSetup(setup, { policy, steps, groups, seed });
      const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
      const simulated = `${outcome.population.samples.toLocaleString('en')} requests, ${servers.toLocaleString('en')} servers, ${outcome.steps.length} rounds, ${Math.round(outcome.seconds).toLocaleString('en')} simulated seconds`;
      const megabytes = Math.round(process.resourceUsage().maxRSS / 1_024);
      console.log(`${simulated}: ${seconds.toFixed(1)} s, ${megabytes.toLocaleString('en')} MB`);
    });
}
