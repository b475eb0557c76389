import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { EXPERIMENTS } from '../experiments';
import { headlineJson, headlineText } from '../headlines/print-headlines';
import { runHeadlines } from '../headlines/run-headlines';
import { Progress } from '../output/progress';
import { wholeNumber } from './numbers';

interface Options {
  seeds: number;
  quick?: boolean;
  json?: string;
}

export function headlineCommand(program: Command): void {
  program
    .command('headline')
    .description('reruns the published headlines and says which hold')
    .option('--seeds <n>', 'runs of everything, each under another seed', wholeNumber(1, 100), 5)
    .option('--quick', 'fewer steps, one seed unless --seeds says more; the shapes hold, the numbers are rougher')
    .option('--json <file>', 'write the results to a file')
    .action(async (options: Options, command: Command) => {
      const isGiven = command.getOptionValueSource('seeds') === 'cli';
      const seeds = options.quick && !isGiven ? 1 : options.seeds;
      const progress = new Progress(seeds * EXPERIMENTS.length, 'headlines');
      const all = Array.from({ length: seeds }, (_, index) => index + 1);
      const run = runHeadlines(all, options.quick ?? false, progress);
      progress.stop();
      console.log(headlineText(run));
      if (options.json !== undefined) {
        await writeFile(options.json, `${JSON.stringify(headlineJson(run), null, 2)}\n`);
      }
    });
}
