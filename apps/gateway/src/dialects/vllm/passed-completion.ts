import { declaredFields, findPassed, knownFields } from '../passed/passed-request';
import { UNCONTINUED } from './vllm-sampling';

/** Maximum alternatives of a token, as in vLLM without `--max-logprobs`. */
export const MAX_LOGPROBS = 20;

/** Parameters for values that the gateway does not write. */
// prettier-ignore
export const PASSED_SAMPLING = [
  'prompt_logprobs', 'best_of', 'use_beam_search', 'length_penalty', 'echo', 'logprob_token_ids', 'session_params',
  'return_hidden_states', 'return_cached_tokens_details', 'images_config',
];

/** Further fields of the API of OpenAI without a meaning for engines. */
export const OPENAI_FIELDS = [
  'store',
  'metadata',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'verbosity',
];

/** Fields of older releases. */
const OTHER_FIELDS = [...UNCONTINUED, ...OPENAI_FIELDS];
const KNOWN = knownFields(
  [...declaredFields('/v1/completions'), ...OTHER_FIELDS],
  [...PASSED_SAMPLING, 'suffix', 'prompt_embeds'],
);

/** The field because of which a request of `/v1/completions` is passed on; undefined: the gateway reads the request. */
export function findPassedCompletion(body: Record<string, unknown>): string | undefined {
  const { max_tokens: maxTokens, logprobs, ...fields } = body;
  // The request asks only for scores of the prompt.
  if (maxTokens === 0) return 'max_tokens';
  if (typeof logprobs === 'number' && (logprobs > MAX_LOGPROBS || logprobs < 0)) return 'logprobs';
  return findPassed(fields, KNOWN);
}
