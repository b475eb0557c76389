import { expect, it } from 'vitest';
import type { TokenIncrement } from '../engine-adapter';
import { AttemptTokens } from './attempt-tokens';
import { OpenAiChunkReader } from './openai-chunk-reader';

const chunk = (choice: object, completionTokens?: number) => ({
  choices: [{ index: 0, finish_reason: null, ...choice }],
  ...(completionTokens !== undefined && { usage: { prompt_tokens: 7, completion_tokens: completionTokens } }),
});

function read(chunks: object[]) {
  const increments: TokenIncrement[] = [];
  const tokens = new AttemptTokens((increment) => increments.push(increment));
  const reader = new OpenAiChunkReader();
  for (const one of chunks) tokens.take(reader.read(one as Record<string, unknown>));
  return { increments, result: tokens.result(tokens.finishReason ?? 'aborted', undefined) };
}

it('has the size of the prompt with the first tokens of a stream with usage in each chunk', () => {
  const { increments, result } = read([
    chunk({ text: 'a', token_ids: [1] }, 1),
    chunk({ text: 'b', token_ids: [2] }, 2),
  ]);
  expect(increments[0]).toMatchObject({ promptTokens: 7, tokenCount: 1 });
  expect(result).toMatchObject({ tokenIds: [1, 2], usage: { promptTokens: 7, completionTokens: 2 } });
});

it('refuses a completion whose ids do not add up to the count of the engine', () => {
  const chunks = [chunk({ text: 'a', token_ids: [1] }, 1), chunk({ text: 'b', token_ids: [3] }, 3)];
  expect(() => read(chunks)).toThrow(expect.objectContaining({ code: 'ENGINE_PROTOCOL' }));
});

it('has no ids of a chat whose parser of calls has kept some', () => {
  const { result } = read([
    chunk({ delta: { content: 'a' }, token_ids: [1] }, 1),
    chunk({ delta: {}, token_ids: [3] }, 3),
  ]);
  expect(result).toMatchObject({ tokenIds: undefined, tokenCount: 3, text: 'a' });
});

it('keeps the first of two ends, and tokens that arrive behind it', () => {
  const call = { tool_calls: [{ index: 0, function: { arguments: '}' } }] };
  const { increments, result } = read([
    chunk({ delta: { content: 'a' }, token_ids: [1], finish_reason: 'length' }),
    chunk({ delta: call, token_ids: [2] }),
    chunk({ delta: {}, token_ids: [], finish_reason: 'stop', stop_reason: 9 }),
  ]);
  expect(result).toMatchObject({ finishReason: 'length', engineFinishReason: 'length', tokenIds: [1, 2] });
  expect(increments[1]!.choice!.delta).toEqual(call);
});

it('counts a token for each piece of a tool call without ids or usage, and none for a role', () => {
  const reader = new OpenAiChunkReader();
  const piece = (delta: object) => reader.read({ choices: [{ index: 0, delta, finish_reason: null }] });
  const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } };
  const counts = [
    { role: 'assistant', content: '' },
    { role: 'assistant', content: null, refusal: null, tool_calls: [] },
    { tool_calls: [call] },
    { tool_calls: [{ index: 0, function: { arguments: '{' } }] },
  ].map((delta) => piece(delta).increment!.tokenCount);
  expect(counts).toEqual([0, 0, 1, 1]);
});

it('counts the tokens of a chunk by their log probabilities without ids or usage', () => {
  const { increments } = read([
    chunk({ text: 'a b c', logprobs: { token_logprobs: [-1, -2, -3] } }),
    chunk({ delta: { content: 'd e' }, logprobs: { content: [{ logprob: -1 }, { logprob: -2 }] } }),
    chunk({ text: 'f', logprobs: null }),
  ]);
  expect(increments.map(({ tokenCount }) => tokenCount)).toEqual([3, 2, 1]);
});
