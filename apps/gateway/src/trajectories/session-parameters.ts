import { invalidField, LIMITS } from '@broomwagon/contracts';
import { SAMPLING_NAMES } from '../dialects/vllm/vllm-sampling';
import { isCount, isSet, jsonText, parseObject, splitSampling } from '../fields/read-fields';

const PARENT = 'sampling_params';
/** Parameters that are passed to engines unread. */
// prettier-ignore
const FURTHER: ReadonlySet<string> = new Set([
  'presence_penalty', 'frequency_penalty', 'logit_bias', 'bad_words', 'allowed_token_ids', 'ignore_eos',
  'skip_special_tokens', 'spaces_between_special_tokens', 'include_stop_str_in_output', 'thinking_token_budget',
  'repetition_detection', 'structured_outputs', 'no_stop_trim', 'stop_regex', 'regex', 'ebnf', 'json_schema',
  'structural_tag', 'custom_params',
]);

/**
 * Checks sampling parameters that a session sets in each of its requests, under the names of vLLM. `logprobs`, which
 * the trainer of rllm sends, has no effect: recorded turns always have log probabilities, and a client gets log
 * probabilities if its request asks for them.
 * @returns JSON; undefined without parameters
 * @throws BroomwagonError VALIDATION_FAILED with the field
 */
export function checkSessionSampling(value: unknown): string | undefined {
  const {
    logprobs: _recorded,
    max_completion_tokens: newer,
    max_tokens: maxTokens = newer,
    ...others
  } = parseObject(value ?? undefined, PARENT);
  if (maxTokens !== undefined && !isCount(maxTokens, 1, LIMITS.maxTokens)) {
    throw invalidField(`${PARENT}.max_tokens`, `must be a whole number from 1 to ${LIMITS.maxTokens}`);
  }
  const { unknown } = splitSampling(others, SAMPLING_NAMES, false);
  const foreign = Object.keys(unknown).find((name) => !FURTHER.has(name));
  if (foreign !== undefined) {
    throw invalidField(`${PARENT}.${foreign}`, 'is no sampling parameter of a session: send it with each request');
  }
  const parameters = maxTokens === undefined ? others : { max_tokens: maxTokens, ...others };
  const json = jsonText(parameters, PARENT);
  if (Buffer.byteLength(json) > LIMITS.samplingBytes) {
    throw invalidField(PARENT, `must have at most ${LIMITS.samplingBytes} bytes as JSON`);
  }
  return isSet(parameters) ? json : undefined;
}
