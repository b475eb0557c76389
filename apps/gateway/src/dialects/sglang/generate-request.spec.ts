import { expect, it } from 'vitest';
import { readGenerateRequest } from './generate-request';

const PROMPTS = [[1], [2], [3]];
const read = (body: object) => readGenerateRequest({ ...body }, {}, { tokenId: '', role: 'client' }).inputs;

it('return_logprob is a boolean, or a list with a boolean for each prompt', () => {
  const readLogprobs = (body: object) => read(body).map(({ sampling }) => sampling.logprobs);
  expect(readLogprobs({ input_ids: PROMPTS, return_logprob: [true, false, true] })).toEqual([true, undefined, true]);
  expect(readLogprobs({ input_ids: PROMPTS, return_logprob: true })).toEqual([true, true, true]);
  for (const body of [
    { input_ids: PROMPTS, return_logprob: [true] },
    { input_ids: PROMPTS, return_logprob: [1, 0, null] },
    { input_ids: [1], return_logprob: [true] },
    { input_ids: [1], return_logprob: 'yes' },
  ]) {
    expect(() => read(body)).toThrow(/return_logprob/);
  }
});

it('token_ids_logprob is one list for all prompts, or a list with a list for each prompt', () => {
  const readLogprobIds = (ids: unknown) =>
    read({ input_ids: PROMPTS, token_ids_logprob: ids }).map(({ prompt }) => prompt.engineFields?.token_ids_logprob);
  expect(readLogprobIds([5, 6])).toEqual([
    [5, 6],
    [5, 6],
    [5, 6],
  ]);
  expect(readLogprobIds([5, 6, 7])).toEqual([
    [5, 6, 7],
    [5, 6, 7],
    [5, 6, 7],
  ]);
  expect(readLogprobIds([[5], [6, 7], [8]])).toEqual([[5], [6, 7], [8]]);
  expect(() => readLogprobIds([[5], [6]])).toThrow(/token_ids_logprob/);
});

it('a prompt is not continued if the engine answers it with values of one call only', () => {
  const isContinued = (more: object) => read({ input_ids: PROMPTS, ...more }).map((input) => input.isContinued);
  expect(isContinued({ logprob_start_len: [-1, 0, -1] })).toEqual([true, false, true]);
  expect(isContinued({ top_logprobs_num: [0, 2, 0] })).toEqual([true, false, true]);
  expect(isContinued({ logprob_start_len: 0 })).toEqual([false, false, false]);
  expect(isContinued({ sampling_params: { regex: 'a' } })).toEqual([false, false, false]);
});

it('sampling_params may be a list with the parameters of each prompt', () => {
  const lists = [{ max_new_tokens: 3 }, null, { sampling_seed: 5, regex: 'a' }];
  const inputs = read({ input_ids: PROMPTS, sampling_params: lists });
  expect(inputs.map(({ maxTokens, sampling, isContinued }) => [maxTokens, sampling, isContinued])).toEqual([
    [3, {}, true],
    [128, {}, true],
    [128, { seed: 5 }, false],
  ]);
  const twice = read({ input_ids: PROMPTS, sampling_params: lists.map((one) => ({ ...one, n: 2 })) });
  expect(twice.map(({ maxTokens }) => maxTokens)).toEqual([3, 3, 128, 128, 128, 128]);
  expect(() => read({ input_ids: PROMPTS, sampling_params: [{ n: 2 }, {}, {}] })).toThrow(/same of each prompt/);
});
