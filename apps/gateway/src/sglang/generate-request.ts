import type { IncomingHttpHeaders } from 'node:http';
import { findPromptFault, invalidField, LIMITS, type Prompt, type SamplingParameters } from '@broomwagon/contracts';
import type { GenerationRequest } from '../http/generation-responder';
import { idOf, isCount, isSet, objectOf, splitSampling, withoutNulls } from '../http/read-fields';
import { placementOf, textOf } from '../http/placement';
import type { Caller } from '../keys/api-keys';

/** Tokens of a response without `max_new_tokens`, as in SGLang. */
const DEFAULT_MAX_NEW_TOKENS = 128;
/** The names of SGLang for our sampling parameters. All others are passed to the engine unread. */
const SAMPLING_NAMES: Record<string, keyof SamplingParameters> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  sampling_seed: 'seed',
  stop: 'stop',
  stop_token_ids: 'stopTokenIds',
  min_new_tokens: 'minTokens',
  repetition_penalty: 'repetitionPenalty',
};
/** With these, the tokens of a continued call differ from those of a whole one. */
const UNCONTINUED_SAMPLING = [
  'regex',
  'json_schema',
  'ebnf',
  'structural_tag',
  'stop_regex',
  'frequency_penalty',
  'presence_penalty',
];
/** Of these, the engine answers with values of its own call only. */
const UNCONTINUED_FIELDS = [
  'top_logprobs_num',
  'token_ids_logprob',
  'return_hidden_states',
  'return_sampling_mask',
  'custom_logit_processor',
  'input_embeds',
];

/** @throws BroomwagonError VALIDATION_FAILED */
export function readGenerateRequest(
  body: Record<string, unknown>,
  headers: IncomingHttpHeaders,
  caller: Caller,
): GenerationRequest {
  const {
    rid,
    text,
    input_ids: promptTokenIds,
    sampling_params: samplingParams,
    return_logprob: logprobs,
    stream,
    session_id: session,
    ...others
  } = withoutNulls(body);
  const sampling = objectOf(samplingParams, 'sampling_params');
  refuseBatches(text, promptTokenIds, sampling);
  const { max_new_tokens: maxTokens = DEFAULT_MAX_NEW_TOKENS, ...samplingFields } = sampling;
  if (!isCount(maxTokens, 1, LIMITS.maxTokens)) {
    throw invalidField('sampling_params.max_new_tokens', `must be a whole number from 1 to ${LIMITS.maxTokens}`);
  }
  const { known, unknown } = splitSampling(samplingFields, SAMPLING_NAMES, logprobs === true);
  const isContinued =
    textOf(headers, 'x-broomwagon-resume') !== 'off' &&
    !UNCONTINUED_SAMPLING.some((name) => isSet(unknown[name])) &&
    !UNCONTINUED_FIELDS.some((name) => isSet(others[name])) &&
    !(typeof others.logprob_start_len === 'number' && others.logprob_start_len >= 0);
  return {
    ...idOf(rid ?? textOf(headers, 'x-request-id'), 'rid'),
    stream: stream === true,
    inputs: [
      {
        prompt: promptOf(text, promptTokenIds, { ...others, ...(isSet(unknown) && { sampling_params: unknown }) }),
        sampling: known,
        maxTokens: maxTokens as number,
        keepsStop: unknown.no_stop_trim === true,
        isContinued,
        continuesEngineAborts: textOf(headers, 'x-broomwagon-on-engine-abort') === 'resume',
        placement: placementOf(headers, caller, session),
      },
    ],
  };
}

function refuseBatches(text: unknown, ids: unknown, sampling: Record<string, unknown>): void {
  const single = 'must be of one request: send each request of a batch by itself';
  if (Array.isArray(text)) throw invalidField('text', single);
  if (Array.isArray(ids) && Array.isArray(ids[0])) throw invalidField('input_ids', single);
  if ((sampling.n ?? 1) !== 1) throw invalidField('sampling_params.n', 'must be 1: send a request for each sample');
}

function promptOf(text: unknown, promptTokenIds: unknown, engineFields: Record<string, unknown>): Prompt {
  const given = { ...(text !== undefined && { text }), ...(promptTokenIds !== undefined && { promptTokenIds }) };
  if (Object.keys(given).length !== 1) throw invalidField('input_ids', 'give exactly one of input_ids and text');
  const fault = findPromptFault(given);
  if (fault) throw invalidField(fault.field.replace('promptTokenIds', 'input_ids') || 'input_ids', fault.reason);
  return { ...(given as Prompt), ...(isSet(engineFields) && { engineFields }) };
}
