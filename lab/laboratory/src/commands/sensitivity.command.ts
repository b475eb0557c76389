import type { Command } from 'commander';
import { figureEleven } from '../experiments/rollpacker';
import { mean } from '../experiments/run-setup';
import { evaluate } from '../headlines/headline';
import { HEADLINES } from '../headlines/headlines';
import { amount, publishedText } from '../headlines/print-headlines';
import { screenTable } from '../output/write-output';
import { FIGURE_11, type RollpackerCap } from '../parameters';
import { numberList, wholeNumber } from './numbers';

interface Options {
  promptShares: number[];
  endlessShares: number[];
  seeds: number;
}

export function sensitivityCommand(program: Command): void {
  program
    .command('sensitivity')
    .description('the rows of RollPacker over how alike siblings are and how many responses never end')
    .option(
      '--prompt-shares <list>',
      'shares of the variance between prompts',
      numberList(0, 1),
      [0.07, 0.2, 0.4, 0.648],
    )
    .option('--endless-shares <list>', 'of the responses', numberList(0, 0.5), [0.01])
    .option('--seeds <n>', 'runs of everything, each with another seed', wholeNumber(1, 100), 2)
    .action(({ promptShares, endlessShares, seeds }: Options) => {
      const columns = endlessShares.flatMap((endlessShare) =>
        promptShares.map((promptShare) => ({ promptShare, endlessShare })),
      );
      const head = columns.map(
        ({ promptShare, endlessShare }) => `${promptShare} alike, ${100 * endlessShare} % endless`,
      );
      const rows = (Object.keys(FIGURE_11) as RollpackerCap[]).flatMap((cap) => rowsOf(cap, columns, seeds));
      console.log(screenTable({ head: ['', 'published', ...head], rows }));
    });
}

/** A row of the table for each headline of a cap: what it is under each column, and its ratio. */
function rowsOf(
  cap: RollpackerCap,
  columns: { promptShare: number; endlessShare: number }[],
  seeds: number,
): string[][] {
  const measured = columns.map((lengths) =>
    Array.from({ length: seeds }, (_, index) => figureEleven(cap, index + 1, lengths)),
  );
  return HEADLINES.filter(({ measure }) => measure.startsWith(`${cap}.`)).map((headline) => {
    const cells = measured.map((runs) => {
      const values = runs.map((measures) => measures[headline.measure]!);
      const { ratio, holds } = evaluate(headline, values);
      return `${amount(mean(values), headline.unit)} (${ratio.toFixed(2)}${holds ? '' : ', no'})`;
    });
    return [`${cap}: ${headline.what}`, publishedText(headline), ...cells];
  });
}
