import { writeFile } from 'node:fs/promises';
import { Option, type Command } from 'commander';
import { EXPERIMENTS } from '../experiments';
import { svgRatios } from '../headlines/draw-ratios';
import { keptInFile } from '../headlines/kept-measures';
import { headlineJson, headlinePage, headlineText } from '../headlines/print-headlines';
import { runHeadlines } from '../headlines/run-headlines';
import { Progress } from '../output/progress';
import { wholeNumber } from './numbers';
import { drawn, WRITTEN_TO } from '../output/write-output';

interface Options {
  seeds: number;
  quick?: boolean;
  out: string;
  json?: string;
  measures?: string;
  only?: string[];
}

export function headlineCommand(program: Command): void {
  program
    .command('headline')
    .description('repeats the published results and prints which of them are reproduced')
    .option('--seeds <n>', 'runs of everything, each with another seed', wholeNumber(1, 100), 5)
    .option('--quick', 'fewer steps, one seed unless --seeds is given; less exact numbers')
    .option('--out <folder>', 'folder of the plot and the page', 'laboratory-output')
    .option('--json <file>', 'write the results to a file')
    .option('--measures <file>', 'keep what was measured in a file, and go on from there')
    .addOption(
      new Option('--only <experiment...>', 'run these now; print what is known').choices(
        EXPERIMENTS.map(({ id }) => id),
      ),
    )
    .action(async (options: Options, command: Command) => {
      const isGiven = command.getOptionValueSource('seeds') === 'cli';
      const seeds = options.quick && !isGiven ? 1 : options.seeds;
      const isQuick = options.quick ?? false;
      const { only, measures } = options;
      const progress = new Progress(seeds * (only ?? EXPERIMENTS).length, 'headlines');
      const all = Array.from({ length: seeds }, (_, index) => index + 1);
      const kept = measures === undefined ? undefined : keptInFile(measures, isQuick);
      const run = runHeadlines(all, isQuick, progress, { kept, only });
      progress.stop();
      console.log(headlineText(run));
      const files = { 'headlines.svg': svgRatios(run.headlines), 'headlines.html': headlinePage(run) };
      console.log(`${WRITTEN_TO} ${await drawn(options.out, files)}`);
      if (options.json !== undefined) {
        await writeFile(options.json, `${JSON.stringify(headlineJson(run), null, 2)}\n`);
      }
    });
}
