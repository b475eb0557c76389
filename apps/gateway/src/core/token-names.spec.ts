import { expect, it } from 'vitest';
import { TokenNames } from './token-names';

it('tokens have the names and alternatives of the engine, and the place of their text', () => {
  const names = new TokenNames();
  const logprobs = { tokens: ['a', '😀'], top_logprobs: [{ a: -1, b: -2 }, null] };
  names.take({ text: 'a😀', tokenIds: [1, 2], tokenCount: 2, choice: { logprobs } });
  names.take({ text: 'c', tokenIds: [3], tokenCount: 1 });
  expect(names.from(0)).toEqual({
    tokens: ['a', '😀', 'c'],
    top_logprobs: [{ a: -1, b: -2 }, null, null],
    text_offset: [0, 1, 2],
  });
  expect(names.from(2)).toEqual({ tokens: ['c'], top_logprobs: [null], text_offset: [2] });
});

it('several tokens without names are named by their ids, and a restart removes all names', () => {
  const names = new TokenNames();
  names.take({ text: 'ab', tokenIds: [1, 2], tokenCount: 2 });
  expect(names.from(0).tokens).toEqual(['token_id:1', 'token_id:2']);
  names.clear();
  names.take({ text: 'c', tokenIds: [3], tokenCount: 1 });
  expect(names.from(0)).toEqual({ tokens: ['c'], top_logprobs: [null], text_offset: [0] });
});
