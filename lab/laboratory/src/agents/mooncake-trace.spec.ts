import { expect, it } from 'vitest';
import { readMooncakeTrace } from './mooncake-trace';

const line = (timestamp: number, input: number, output: number, ids: number[]) =>
  JSON.stringify({ timestamp, input_length: input, output_length: output, hash_ids: ids });

it('reads requests with a common prefix as the turns of a session, with the tokens that each turn adds', () => {
  const text = [
    line(0, 1_100, 100, [0, 1, 2]),
    line(1_000, 700, 10, [0, 9]),
    line(13_000, 1_700, 50, [0, 1, 3, 4]),
    line(14_000, 1_100, 20, [0, 8, 7]),
  ].join('\n');
  const { prefixTokens, sessions } = readMooncakeTrace(`${text}\n`);
  expect(prefixTokens).toBe(512);
  expect(sessions.map(({ startsAtSeconds, turns }) => [startsAtSeconds, turns.length])).toEqual([
    [0, 2],
    [1, 1],
    [14, 1],
  ]);
  expect(sessions[0]!.turns).toEqual([
    { addedTokens: 1_100 - 512, madeTokens: 100, toolSeconds: 10 },
    { addedTokens: 1_700 - 1_200, madeTokens: 50, toolSeconds: 0 },
  ]);
});

it('names the line of a trace that has another format', () => {
  expect(() => readMooncakeTrace(`${line(0, 600, 1, [0])}\n{"timestamp": 1}`)).toThrow('line 2');
});
