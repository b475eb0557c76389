import { expect, it } from 'vitest';
import { toDialect } from './caller-fields';

it.each([
  ['vllm', { regex: 'a' }, 'regex'],
  ['vllm', { sampling_params: { ebnf: 'a' } }, 'sampling_params.ebnf'],
  ['sglang', { bad_words: ['a'] }, 'bad_words'],
  ['sglang', { guided_json: {}, structured_outputs: { json: '{}' } }, 'structured_outputs'],
  ['sglang', { add_special_tokens: false }, 'add_special_tokens'],
] as const)('%s refuses %j, which only the other dialect takes', (dialect, fields, field) => {
  expect(() => toDialect(dialect, fields)).toThrow(expect.objectContaining({ code: 'ENGINE_REJECTED', field }));
});

it.each([
  ['vllm', { sampling_params: { frequency_penalty: 1 } }, { frequency_penalty: 1 }],
  ['vllm', { no_stop_trim: true }, { include_stop_str_in_output: true }],
  ['sglang', { sampling_params: { regex: 'a' } }, { sampling_params: { regex: 'a' } }],
  ['sglang', { include_stop_str_in_output: true }, { no_stop_trim: true }],
  // Fields that request nothing, change nothing, or belong to no known dialect.
  ['sglang', { bad_words: [], best_of: 0 }, { bad_words: [], best_of: 0 }],
  ['sglang', { add_special_tokens: true }, { add_special_tokens: true }],
  ['vllm', { log_metrics: true, a_new_field: 1 }, { log_metrics: true, a_new_field: 1 }],
  ['openai', { regex: 'a', bad_words: ['b'] }, { regex: 'a', bad_words: ['b'] }],
] as const)('%s gets %j as %j', (dialect, fields, expected) => {
  expect(toDialect(dialect, fields)).toEqual(expected);
});
