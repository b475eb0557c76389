import { expect, it } from 'vitest';
import { reportedSpans } from './weight-spans';

const span = (version: string, start: number, end: number) => ({ version, start, end });

it.each([
  ['of exactly the tokens', [span('1', 0, 3), span('2', 3, 8)], [span('1', 0, 3), span('2', 3, 8)]],
  ['that end after the last kept token', [span('1', 0, 10)], [span('1', 0, 8)]],
  ['that begin there', [span('1', 0, 8), span('2', 8, 10)], [span('1', 0, 8)]],
  ['of the most tokens', [span('1', 0, Number.MAX_SAFE_INTEGER)], [span('1', 0, 8)]],
  ['that overlap', [span('1', 0, 5), span('2', 3, 8)], [span('1', 0, 5), span('2', 5, 8)]],
  ['without tokens', [span('1', 4, 4)], []],
])('spans %s', (_, list, spans) => {
  expect(reportedSpans(list, undefined, 8)).toEqual(spans);
});
