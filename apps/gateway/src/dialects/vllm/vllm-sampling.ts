import type { SamplingParameters } from '@broomwagon/contracts';

/** Names of vLLM for our sampling parameters. All other parameters are passed to the engine unread. */
export const SAMPLING_NAMES: Record<string, keyof SamplingParameters> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  seed: 'seed',
  stop: 'stop',
  stop_token_ids: 'stopTokenIds',
  min_tokens: 'minTokens',
  repetition_penalty: 'repetitionPenalty',
  stream_interval: 'streamInterval',
};

/** Parameters with which the tokens of a continued call differ from the tokens of a whole call. */
export const UNCONTINUED = [
  'structured_outputs',
  'response_format',
  'guided_decoding',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'frequency_penalty',
  'presence_penalty',
  'thinking_token_budget',
  'bad_words',
  'repetition_detection',
  'truncate_prompt_tokens',
  'vllm_xargs',
  'regex',
  'ebnf',
  'json_schema',
  'stop_regex',
  'custom_params',
  'custom_logit_processor',
];

/** Parameters for values that answers of `/v1/messages` and `/v1/responses` cannot have. */
export const REFUSED_SAMPLING = ['prompt_logprobs', 'best_of', 'use_beam_search'];
