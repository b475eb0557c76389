import type { Command } from 'commander';
import { responseLength, type LengthDistribution } from '@broomwagon/models';
import { figureEleven } from '../experiments/rollpacker';
import { mean } from '../experiments/run-setup';
import { evaluate } from '../headlines/headline';
import { HEADLINES } from '../headlines/headlines';
import { amount, publishedText } from '../headlines/print-headlines';
import { screenTable } from '../output/write-output';
import { FIGURE_11, type RollpackerCap } from '../parameters';
import { numberList, wholeNumber } from './numbers';

/** Ratio of medians in figure 4a of RollPacker (code): 709 tokens in the long round, 599 in the five rounds of veRL. */
const LONG_ROUND_MEDIAN = 1.18;

interface Options {
  promptShares: number[];
  endlessShares: number[];
  seeds: number;
}

/** @param measure runs the rows of one cap */
export function sensitivityCommand(program: Command, measure: typeof figureEleven = figureEleven): void {
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
      const rows = (Object.keys(FIGURE_11) as RollpackerCap[]).flatMap((cap) =>
        buildRows(cap, columns, seeds, measure),
      );
      rows.push([
        '16k: median of a long round / of all, both over-provisioned 1.25',
        `${LONG_ROUND_MEDIAN}x`,
        ...columns.map((lengths) => `${longRoundMedian({ ...FIGURE_11['16k'].lengths, ...lengths }).toFixed(2)}x`),
      ]);
      console.log(screenTable({ head: ['', 'published', ...head], rows }));
    });
}

/**
 * Median response length of prompts that were cut in short rounds, each response drawn again, over the median of all
 * responses: the more alike siblings are, the higher. Uses lengths only, as if all responses ran at one speed.
 */
function longRoundMedian(lengths: LengthDistribution): number {
  const { groupsPerStep, samples } = FIGURE_11['16k'];
  const launched = { groups: groupsPerStep * 1.25, samples: samples * 1.25 };
  const rounds = 40;
  const drawn = (prompt: string, first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) =>
      responseLength(lengths, { seed: 1, promptKey: prompt, sampleIndex: first + index }),
    );
  const [all, long]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const groups = Array.from({ length: launched.groups }, (_, index) => {
      const prompt = `${round}-${index}`;
      const tokens = drawn(prompt, 0, launched.samples).toSorted((one, other) => one - other);
      return { prompt, tokens, ends: tokens[samples - 1]! };
    }).toSorted((one, other) => one.ends - other.ends);
    for (const { tokens } of groups) all.push(...tokens);
    for (const { prompt } of groups.slice(groupsPerStep)) long.push(...drawn(prompt, launched.samples, samples));
  }
  return median(long) / median(all);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}

/** Rows of the table for the headlines of a cap: value and ratio in each column. */
function buildRows(
  cap: RollpackerCap,
  columns: { promptShare: number; endlessShare: number }[],
  seeds: number,
  measure: typeof figureEleven,
): string[][] {
  const measured = columns.map((lengths) =>
    Array.from({ length: seeds }, (_, index) => measure(cap, index + 1, lengths)),
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
