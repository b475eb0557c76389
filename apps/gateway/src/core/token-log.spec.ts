import { expect, it } from 'vitest';
import { TokenLog } from './token-log';

const token = (text: string, id = 1) => ({ text, tokenIds: [id], logprobs: [-id], tokenCount: 1 });

it('finds a stop text that begins before the end of a call, and cuts the text there', () => {
  const log = new TokenLog(['xyz', '\n\n'], false);
  for (const text of ['a', 'bx', 'y']) expect(log.take(token(text))).toBe(false);
  log.cut();
  expect(log.take(token('z!'))).toBe(true);
  expect([log.text, log.matched, log.count]).toEqual(['ab', 'xyz', 4]);
  // Tokens after the stop text are not taken.
  expect(log.take(token('c'))).toBe(true);
  expect([log.text, log.count]).toEqual(['ab', 4]);
});

it('leaves stop texts within one call to the engine, and keeps the stop text if it is wanted', () => {
  const log = new TokenLog(['yz'], true);
  expect(log.take(token('xyz'))).toBe(false);
  log.cut();
  expect(log.take(token('yz'))).toBe(false);
  log.cut();
  for (const text of ['y', 'z']) log.take(token(text));
  expect([log.text, log.matched]).toEqual(['xyzyzyz', undefined]);
  const kept = new TokenLog(['yz'], true);
  kept.take(token('xy'));
  kept.cut();
  expect(kept.take(token('zw'))).toBe(true);
  expect(kept.text).toBe('xyz');
});

it('continues before a character whose text has not arrived, and not before tokens that never have a text', () => {
  const log = new TokenLog([], false);
  for (const [text, id] of [
    ['a', 1],
    ['', 2],
    ['', 3],
  ] as const)
    log.take(token(text, id));
  log.cut();
  expect([log.allIds, log.allLogprobs, log.text]).toEqual([[1], [-1], 'a']);
  for (const [text, id] of [
    ['', 2],
    ['é', 3],
  ] as const)
    log.take(token(text, id));
  expect([log.allIds, log.text]).toEqual([[1, 2, 3], 'aé']);
  for (const id of [4, 5, 6, 7]) log.take(token('', id));
  log.cut();
  expect(log.allIds).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

it('has no list of ids if some are missing, and NaN for a missing log probability', () => {
  const log = new TokenLog([], false);
  log.take(token('a'));
  log.take({ text: 'b', tokenCount: 1 });
  expect([log.allIds, log.allLogprobs, log.count, log.text]).toEqual([undefined, [-1, Number.NaN], 2, 'ab']);
  log.take({ text: 'cd', tokenCount: 2, logprobs: [-3] });
  log.take({ text: 'e', tokenCount: 1, logprobs: [-4] });
  expect(log.logprobsFrom(1)).toEqual([Number.NaN, Number.NaN, Number.NaN, -4]);
  log.clear();
  expect([log.allIds, log.count, log.text]).toEqual([[], 0, '']);
});

it('keeps long responses exactly, and returns the part after any token or character', () => {
  const log = new TokenLog([], false);
  const all = Array.from({ length: 1_000 }, (_, index) => ({
    id: index * 97,
    logprob: -index / 8,
    text: ` é${index}`,
  }));
  // 0.1 and 2^31 need more than 32 bits.
  all.push({ id: 2 ** 31, logprob: -0.1, text: 'x' });
  const text = all.map((one) => one.text).join('');
  for (const { id, logprob, text: piece } of all) {
    log.take({ tokenIds: [id], logprobs: [logprob], text: piece, tokenCount: 1 });
    expect(log.textFrom(log.textLength - piece.length)).toBe(piece);
  }
  expect(log.allIds).toEqual(all.map(({ id }) => id));
  expect(log.logprobsFrom(998)).toEqual([-998 / 8, -999 / 8, -0.1]);
  expect([log.text, log.textFrom(300), log.textLength]).toEqual([text, text.slice(300), text.length]);
});

it('is complete, with all tokens, as soon as the engine has reported the end', () => {
  const log = new TokenLog([], false);
  log.take(token('a'));
  expect(log.isComplete).toBe(false);
  log.take({ ...token('', 2), isLast: true });
  expect([log.isComplete, log.allIds]).toEqual([true, [1, 2]]);
  log.clear();
  expect(log.isComplete).toBe(false);
});

it('keeps a log probability that the engine has not computed: 0 would be the logarithm of probability 1', () => {
  const log = new TokenLog([], false);
  for (const logprob of [-0.5, null, -0.25]) {
    log.take({ text: 'a', tokenIds: [1], logprobs: [logprob], tokenCount: 1 });
  }
  expect(JSON.stringify(log.allLogprobs)).toBe('[-0.5,null,-0.25]');
  expect(JSON.stringify(log.logprobsFrom(1))).toBe('[null,-0.25]');
});
