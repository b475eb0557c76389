import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { EXPERIMENTS } from '../experiments';
import { svgRatios } from '../headlines/draw-ratios';
import { headlineJson, headlinePage, headlineText } from '../headlines/print-headlines';
import { runHeadlines } from '../headlines/run-headlines';
import { Progress } from '../output/progress';
import { wholeNumber } from './numbers';
import { drawn, WRITTEN_TO } from './outputs';

interface Options {
  seeds: number;
  quick?: boolean;
  out: string;
  json?: string;
}

export function headlineCommand(program: Command): void {
  program
    .command('headline')
    .description('repeats the published results and prints which of them are reproduced')
    .option('--seeds <n>', 'runs of everything, each with another seed', wholeNumber(1, 100), 5)
    .option('--quick', 'fewer steps, one seed unless --seeds is given; less exact numbers')
    .option('--out <folder>', 'folder of the plot and the page', 'laboratory-output')
    .option('--json <file>', 'write the results to a file')
    .action(async (options: Options, command: Command) => {
      const isGiven = command.getOptionValueSource('seeds') === 'cli';
      const seeds = options.quick && !isGiven ? 1 : options.seeds;
      const progress = new Progress(seeds * EXPERIMENTS.length, 'headlines');
      const all = Array.from({ length: seeds }, (_, index) => index + 1);
      const run = runHeadlines(all, options.quick ?? false, progress);
      progress.stop();
      console.log(headlineText(run));
      const files = { 'headlines.svg': svgRatios(run.headlines), 'headlines.html': headlinePage(run) };
      console.log(`${WRITTEN_TO} ${await drawn(options.out, files)}`);
      if (options.json !== undefined) {
        await writeFile(options.json, `${JSON.stringify(headlineJson(run), null, 2)}\n`);
      }
    });
}
