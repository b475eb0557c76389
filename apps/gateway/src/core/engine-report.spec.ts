import { expect, it } from 'vitest';
import { EngineReport } from './engine-report';

it('takes prompt ids of the first call only, and counts the prompt without tokens of the response', () => {
  const report = new EngineReport(undefined);
  report.takeIncrement({ text: '', tokenCount: 0, promptTokenIds: [1, 2, 3], promptTokens: 7 }, 4);
  expect([report.promptTokenIds, report.promptTokens]).toEqual([undefined, 3]);
  report.takeIncrement({ text: '', tokenCount: 0, promptTokenIds: [1, 2], promptTokens: 2 }, 0);
  report.takePromptIds([9]);
  expect([report.promptTokenIds, report.promptTokens, report.changes]).toEqual([[1, 2], 3, 1]);
});

it('takes the weights of the lease for a call whose engine reports none, and joins spans of equal weights', () => {
  const report = new EngineReport([1]);
  report.takeResult({ engineFields: { weight_version: 3, more: 1 } }, { start: 0, end: 2, weightVersion: 9 });
  report.takeResult({ engineFields: { weight_version: '3' } }, { start: 2, end: 4, weightVersion: 9 });
  expect([report.fields, report.isVersionReported]).toEqual([{}, true]);
  report.takeResult(undefined, { start: 4, end: 5, weightVersion: 9 });
  report.takeResult(undefined, { start: 5, end: 5, weightVersion: 10 });
  const spans = [
    { version: '3', start: 0, end: 4 },
    { version: '9', start: 4, end: 5 },
  ];
  expect([report.spans, report.isVersionReported, report.changes]).toEqual([spans, false, 4]);
  report.clearSpans();
  expect([report.spans, report.isVersionReported]).toEqual([[], false]);
});

it.each([
  ['less than the tokens of calls before', { promptTokens: 3, cachedTokens: 1 }, [undefined, undefined]],
  ['more cached tokens than the prompt has', { promptTokens: 6, cachedTokens: 9 }, [2, 2]],
  ['no cached tokens', { promptTokens: 6 }, [2, 0]],
])('takes usage with %s', (_, usage, counts) => {
  const report = new EngineReport([1]);
  report.takeResult({ usage: { completionTokens: 1, ...usage } }, { start: 4, end: 5, weightVersion: 0 });
  expect([report.promptTokens, report.cachedTokens]).toEqual(counts);
});
