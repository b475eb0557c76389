import type { Command } from 'commander';
import { expect, it } from 'vitest';
import type { Measures } from '../experiments/experiment';
import type { figureEleven } from '../experiments/rollpacker';
import { HEADLINES } from '../headlines/headlines';
import { documentedCalls, documentedRows, printed, parseRows } from './commands.fixture';
import { sensitivityCommand } from './sensitivity.command';

type Measure = typeof figureEleven;

/** Measures equal to the published numbers, times a factor. */
function timesPublished(factor: number): Measures {
  const lowest = (published: number | readonly [number, number]) => [published].flat()[0]!;
  return Object.fromEntries(HEADLINES.map(({ measure, published }) => [measure, lowest(published) * factor]));
}
const withMeasure = (measure: Measure) => (program: Command) => sensitivityCommand(program, measure);

it('has a column for each pair of shares, with the mean over the seeds and whether it holds', async () => {
  const runs: unknown[][] = [];
  const measure: Measure = (cap, seed, lengths) => {
    runs.push([cap, seed, lengths]);
    // The mean over both seeds is the published number, or half of it if no response is endless.
    return timesPublished((seed - 0.5) * (lengths!.endlessShare === 0 ? 0.5 : 1));
  };
  const options = ['--seeds', '2', '--prompt-shares', '0.1,0.5', '--endless-shares', '0.02,0'];
  const lines = await printed(withMeasure(measure), ...options);
  const rows = parseRows(lines);
  const [long] = rows.splice(-1);
  expect(rows.length).toBeGreaterThan(20);
  for (const [what, published, ...cells] of rows) {
    const holds = `${published} (1.00)`;
    expect([what, ...cells]).toEqual([what, holds, holds, expect.stringMatching(/, no\)$/), expect.any(String)]);
  }
  expect(runs).toHaveLength(3 * 4 * 2);
  expect(runs).toContainEqual(['32k', 2, { promptShare: 0.5, endlessShare: 0.02 }]);
  // The more alike siblings are, the longer are the responses of a long round.
  const [little, much] = long!.slice(2).map((cell) => Number.parseFloat(cell));
  expect(much).toBeGreaterThan(little!);
  expect(await printed(withMeasure(measure), ...options)).toEqual(lines);
});

it.each([
  ['--prompt-shares', '1.5'],
  ['--endless-shares', '0.6'],
  ['--seeds', '0'],
])('refuses a wrong option: %s %s', async (...option) => {
  await expect(printed(sensitivityCommand, ...option)).rejects.toMatchObject({ code: 'commander.invalidArgument' });
});

it('has the options and the rows that its documentation names', async () => {
  const calls = documentedCalls(sensitivityCommand);
  expect(calls).toContainEqual({ seeds: 3, promptShares: [0.07, 0.2, 0.4, 0.648], endlessShares: [0.01, 0.02] });
  const lines = await printed(
    withMeasure(() => timesPublished(1)),
    '--seeds',
    '1',
  );
  // The last documented row counts the others.
  const documented = documentedRows('row ').filter((row) => !row.startsWith('rows of '));
  expect(documented.length).toBeGreaterThan(10);
  const names = parseRows(lines).map(([what]) => what);
  expect(names).toEqual(expect.arrayContaining(documented));
});
