import { expect, it } from 'vitest';
import { brokenBounds } from './broken-bounds';

it('explains for each broken bound of auto how it is known, and how auto reacts', () => {
  expect(brokenBounds()).toEqual([]);
  expect(brokenBounds({ measured: ['maxWaste', 'maxLengthBias'], predicted: ['maxVersionSpan'] })).toEqual([
    {
      by: 'measured',
      text: expect.stringMatching(/ledger.* breaks maxWaste, maxLengthBias\..*goes back.*raise the bound/) as string,
    },
    { by: 'predicted', text: expect.stringMatching(/predicted to break maxVersionSpan\..*nothing to do/) as string },
  ]);
  expect(brokenBounds({ predicted: ['maxWaste'] }).map(({ by }) => by)).toEqual(['predicted']);
});
