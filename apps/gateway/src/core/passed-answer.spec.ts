import { expect, it } from 'vitest';
import { readAnswer } from './passed-answer';

const read = (answer: unknown, contentType = 'application/json') =>
  readAnswer({ contentType, body: Buffer.from(JSON.stringify(answer)) });

it('takes ids, log probabilities and counts of one choice of each dialect', () => {
  const vllm = {
    token_ids: [5, 6],
    logprobs: { content: [{ logprob: -1 }, { logprob: -2 }] },
    finish_reason: 'length',
  };
  expect(read({ choices: [vllm], prompt_token_ids: [1], usage: { completion_tokens: 2 } })).toMatchObject({
    tokenCount: 2,
    tokenIds: [5, 6],
    logprobs: [-1, -2],
    promptTokenIds: [1],
    finishReason: 'length',
  });
  const meta = { output_token_logprobs: [[-1, 5, null]], completion_tokens: 1, finish_reason: { type: 'abort' } };
  expect(read({ text: 'x', output_ids: [5], meta_info: { ...meta, weight_version: '3' } })).toMatchObject({
    tokenCount: 1,
    tokenIds: [5],
    logprobs: [-1],
    text: 'x',
    finishReason: 'aborted',
    engineFields: { weight_version: '3' },
  });
});

it('takes no ids that contradict the counts, and no ids of several choices', () => {
  const choices = [{ token_ids: [5] }, { token_ids: [6, 7] }];
  expect(read({ choices })).toMatchObject({ tokenCount: 3, finishReason: 'stop' });
  expect(read({ choices })).not.toHaveProperty('tokenIds');
  expect(read({ choices: [choices[0]], usage: { completion_tokens: 2 } })).not.toHaveProperty('tokenIds');
  expect(read([{ meta_info: { completion_tokens: 2 } }, { meta_info: { completion_tokens: 3 } }]).tokenCount).toBe(5);
});

it.each([null, 5, 'text', [], [null], { choices: 5 }, { choices: [null] }, { choices: [{ token_ids: ['a'] }] }])(
  'takes nothing of %j',
  (answer) => expect(read(answer)).toMatchObject({ tokenCount: 0, finishReason: 'stop' }),
);

it('takes nothing of an answer that is no JSON', () => {
  expect(read({ usage: { completion_tokens: 2 } }, 'text/plain').tokenCount).toBe(0);
  expect(readAnswer({ contentType: 'application/json', body: Buffer.from('{"usage"') }).tokenCount).toBe(0);
});
