import { describe, expect, it } from 'vitest';
import { AttemptTokens } from './attempt-tokens';
import { OpenAiChunkReader } from './openai-chunk-reader';

const TEXTS = ['The', ' quick', ' brown', ' fox'];
const ids = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => 100 + from + index);

/** Reads chunks of a completion: [from, to] of the tokens, and the count of the engine. */
function readCompletion(last: { from: number; to: number; text?: string; counted?: number }) {
  const reader = new OpenAiChunkReader();
  const tokens = new AttemptTokens();
  const chunk = (from: number, to: number, text: string, counted: number | undefined, reason: string | null) => ({
    choices: [{ text, token_ids: ids(from, to), finish_reason: reason }],
    usage: counted === undefined ? undefined : { prompt_tokens: 3, completion_tokens: counted },
  });
  tokens.take(reader.read(chunk(0, 1, TEXTS[0]!, 1, null)));
  tokens.take(reader.read(chunk(1, 2, TEXTS[1]!, 2, null)));
  const text = last.text ?? TEXTS.slice(last.from, last.to).join('');
  tokens.take(reader.read(chunk(last.from, last.to, text, last.counted, 'abort')));
  const { tokenIds, text: whole, finishReason } = tokens.result(tokens.finishReason!, undefined);
  return { tokenIds, text: whole, finishReason, missing: tokens.missing };
}

describe('the last chunk of a completion that is aborted', () => {
  it('has the tokens that were not sent', () => {
    const read = readCompletion({ from: 2, to: 4, counted: 4 });
    expect(read).toEqual({ tokenIds: ids(0, 4), text: TEXTS.join(''), finishReason: 'aborted', missing: 0 });
  });

  it.each([
    ['repeats all tokens', { from: 0, to: 2, counted: 2 }, 0],
    ['repeats all tokens before new ones', { from: 0, to: 4, counted: 4 }, 2],
    ['repeats all text without tokens', { from: 2, to: 2, text: 'The quick', counted: 2 }, 0],
    ['repeats all tokens, without a count', { from: 0, to: 2 }, 0],
    ['counts tokens that it does not have', { from: 2, to: 2, counted: 4 }, 2],
    ['has fewer tokens than it counts', { from: 2, to: 3, counted: 4 }, 2],
  ])('is dropped with its tokens if it %s', (_, last, missing) => {
    const read = readCompletion(last);
    expect(read).toEqual({ tokenIds: ids(0, 2), text: 'The quick', finishReason: 'aborted', missing });
  });
});

it('a chat of SGLang that repeats its whole text at an abort has it once', () => {
  const reader = new OpenAiChunkReader();
  const tokens = new AttemptTokens();
  const usage = { prompt_tokens: 3, completion_tokens: 2 };
  tokens.take(reader.read({ choices: [{ delta: { role: 'assistant', content: 'The quick' } }], usage }));
  const last = { delta: { content: 'The quick' }, finish_reason: 'abort' };
  tokens.take(reader.read({ choices: [last], usage }));
  expect(tokens.result('aborted', undefined)).toMatchObject({ text: 'The quick', tokenCount: 2 });
});

it.each([
  ['abort', 2, 2],
  [null, 2, 2],
  ['length', undefined, 0],
])('a count of more tokens than were sent, after the finish reason %s', (reason, sent, missing) => {
  const reader = new OpenAiChunkReader();
  const tokens = new AttemptTokens();
  tokens.take(reader.read({ choices: [{ text: 'The quick', token_ids: ids(0, 2), finish_reason: reason }] }));
  tokens.take(reader.read({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }));
  expect(tokens.missing).toBe(missing);
  // A whole response whose ids lack tokens has no ids.
  expect(tokens.result('aborted', undefined).tokenIds?.length).toBe(sent);
});

it('a chat that repeats all tokens at an abort, and counts them later, has its ids', () => {
  const reader = new OpenAiChunkReader();
  const tokens = new AttemptTokens();
  const chunk = (content: string, count: number, reason: string | null) => ({
    choices: [{ delta: { role: 'assistant', content }, token_ids: ids(0, count), finish_reason: reason }],
  });
  tokens.take(reader.read(chunk('The', 1, null)));
  tokens.take(reader.read(chunk('The quick brown', 3, 'abort')));
  tokens.take(reader.read({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 3 } }));
  expect(tokens.result('aborted', undefined)).toMatchObject({ text: 'The', tokenIds: ids(0, 1), tokenCount: 1 });
  expect(tokens.missing).toBe(2);
});
