import { writeFile, readFile } from 'node:fs/promises';
import { Option, type Command } from 'commander';
import { parseLengthTrace, type LengthTrace } from '@broomwagon/models';
import { drawn, WRITTEN_TO, screenTable } from '../output/write-output';
import { findFrontier, frontierRuns, meanFrontier } from '../frontier/frontier';
import { frontierPlots, frontierTable } from '../frontier/draw-frontier';
import { highest } from '../highest';
import { htmlReport } from '../output/html-report';
import { Progress } from '../output/progress';
import { SETUPS, type Setup, type SetupName } from '../parameters';
import { tracedWorkload } from '../workload/workload';
import { numberList, wholeNumber } from './numbers';

interface Options {
  setup: SetupName;
  overProvisions: number[];
  steps: number;
  seeds: number;
  trace?: string;
  cap?: number;
  out: string;
  json?: string;
}

export function frontierCommand(program: Command): void {
  program
    .command('frontier')
    .description('speed against off-policy share, length bias and batch variation, for every policy')
    .addOption(
      new Option('--setup <name>', 'engines and lengths').choices(Object.keys(SETUPS)).default('rollpacker16k'),
    )
    .option('--over-provisions <list>', 'launched / needed groups', numberList(1), [1.125, 1.25, 1.375, 1.5, 1.75, 2])
    .option('--steps <n>', 'training steps of a run', wholeNumber(2, 100_000), 45)
    .option('--seeds <n>', 'runs of each policy, each with another seed', wholeNumber(1, 100), 1)
    .option('--trace <file>', 'recorded lengths (.csv or .jsonl) instead of the lengths of the setup')
    .option('--cap <tokens>', 'longest response; default: the longest of the trace', wholeNumber(1, 10_000_000))
    .option('--out <folder>', 'folder of the plots and the page', 'laboratory-output')
    .option('--json <file>', 'write the points to a file')
    .action(async (options: Options) => {
      const base: Setup = SETUPS[options.setup];
      const trace = options.trace === undefined ? undefined : await readTrace(options.trace);
      const capTokens = options.cap ?? (trace ? highest([...trace.values()].flat()) : base.capTokens);
      const setup: Setup = { ...base, capTokens };
      const workload = trace && tracedWorkload(options.trace!, trace, capTokens, setup.promptTokens);
      const progress = new Progress(options.seeds * frontierRuns(setup, options.overProvisions), 'frontier');
      const frontier = meanFrontier(
        Array.from({ length: options.seeds }, (_, index) =>
          findFrontier(setup, options.overProvisions, { steps: options.steps, seed: index + 1, workload }, progress),
        ),
      );
      progress.stop();
      const title = `${setup.model}, ${setup.hardware}, cap ${capTokens.toLocaleString('en')}`;
      const table = frontierTable(frontier);
      const intro = `${options.steps} steps of ${setup.groupsPerStep} groups of ${setup.samples}; lengths: ${options.trace ?? options.setup}; seeds: ${options.seeds}. A plain synchronous step takes ${Math.round(frontier.baseSeconds)} s.`;
      console.log(`${title}\n${intro}\n${screenTable(table)}`);
      const plots = frontierPlots(title, frontier);
      const sections = [...plots.map(({ price, svg }) => ({ title: price, svg })), { title: 'All points', table }];
      const files = Object.fromEntries(plots.map(({ price, svg }) => [`frontier-${options.setup}-${price}.svg`, svg]));
      files[`frontier-${options.setup}.html`] = htmlReport(`The frontier: ${title}`, intro, sections);
      console.log(`${WRITTEN_TO} ${await drawn(options.out, files)}`);
      if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(frontier, null, 2)}\n`);
    });
}

/**
 * Reads recorded lengths from a file. @throws RangeError the file is neither .csv nor .jsonl, or has an invalid line
 */
async function readTrace(path: string): Promise<LengthTrace> {
  const format = /\.(csv|jsonl)$/.exec(path)?.[1];
  if (format === undefined) throw new RangeError(`${path}: expected a .csv or .jsonl file`);
  return parseLengthTrace(await readFile(path, 'utf8'), format as 'csv' | 'jsonl', path);
}
