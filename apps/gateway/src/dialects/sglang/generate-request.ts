import type { IncomingHttpHeaders } from 'node:http';
import { invalidField, LIMITS, type SamplingParameters } from '@broomwagon/contracts';
import type { GenerationRequest } from '../../answers/generation-responder';
import { isCount, isSet, parseObject, splitSampling, withoutNulls } from '../../fields/read-fields';
import { parseRequestId, parseRequestIds } from '../../answers/request-id';
import { continuesEngineAborts, parsePlacement, wantsResume } from '../../answers/placement';
import { parseChoiceCount, MAX_CHOICES, parsePrompts } from '../../answers/prompts';
import type { Caller } from '../../keys/api-keys';

/** Maximum tokens of a response without `max_new_tokens`, as in SGLang. */
const DEFAULT_MAX_NEW_TOKENS = 128;
/** Names of SGLang for our sampling parameters. All other parameters are passed to the engine unread. */
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
  stream_interval: 'streamInterval',
};
/** Parameters with which the tokens of a continued call differ from the tokens of a whole call. */
const UNCONTINUED_SAMPLING = [
  'regex',
  'json_schema',
  'ebnf',
  'structural_tag',
  'stop_regex',
  'frequency_penalty',
  'presence_penalty',
  'custom_params',
];
/** Fields that the engine answers with values of one call only. */
const UNCONTINUED_FIELDS = [
  'top_logprobs_num',
  'token_ids_logprob',
  'return_hidden_states',
  'return_sampling_mask',
  'custom_logit_processor',
  'input_embeds',
  'max_thinking_tokens',
];

/** @throws BroomwagonError VALIDATION_FAILED */
export function readGenerateRequest(
  body: Record<string, unknown>,
  headers: IncomingHttpHeaders,
  caller: Caller,
): GenerationRequest & { isBatch: boolean } {
  const {
    rid,
    text,
    input_ids: promptTokenIds,
    sampling_params: samplingParams,
    stream,
    session_id: session,
    return_logprob: returnLogprob,
    ...others
  } = withoutNulls(body);
  if ((text === undefined) === (promptTokenIds === undefined)) {
    throw invalidField('input_ids', 'give exactly one of input_ids and text');
  }
  const { prompts, isList } =
    text === undefined
      ? parsePrompts(promptTokenIds, 'input_ids', 'promptTokenIds')
      : parsePrompts(text, 'text', 'text');
  const samplings = parseSamplings(samplingParams, prompts.length, isList, headers);
  const samples = parseChoiceCount(samplings[0]!.n, prompts, 'sampling_params.n');
  if (samplings.some(({ n }) => n !== samples))
    throw invalidField('sampling_params.n', 'must be the same of each prompt');
  const continuesAborts = continuesEngineAborts(headers);
  const placement = parsePlacement(headers, caller, session);
  const inputs = prompts.flatMap((prompt, index) => {
    const fields = isList ? fieldsAt(others, index, prompts.length) : others;
    const logprobs = isList ? valueAt('return_logprob', returnLogprob, index, prompts.length) : returnLogprob;
    if (logprobs !== undefined && typeof logprobs !== 'boolean') {
      throw invalidField('return_logprob', 'must be true or false');
    }
    const { known, unknown, maxTokens, isContinuable } = samplings[index]!;
    const sampling = logprobs ? { logprobs, ...known } : known;
    const engineFields = isSet(unknown) ? { sampling_params: unknown, ...fields } : fields;
    return Array.from({ length: samples }, (_, sample) => ({
      maxTokens,
      keepsStop: unknown.no_stop_trim === true,
      isContinued: isContinuable && !hasValuesOfCall(fields),
      prompt: isSet(engineFields) ? { engineFields, ...prompt } : prompt,
      // Each sample gets another seed: samples with one seed would be equal.
      sampling: known.seed === undefined ? sampling : { ...sampling, seed: known.seed + sample },
      continuesEngineAborts: continuesAborts,
      placement,
    }));
  });
  const isBatch = isList || samples > 1;
  const { id, isOwnId, choiceIds } = Array.isArray(rid)
    ? parseRequestIds(rid, 'rid', inputs.length, isList && samples === 1)
    : parseRequestId(rid, 'rid', headers, isBatch ? MAX_CHOICES : undefined);
  return { id, isOwnId, choiceIds, stream: stream === true, isBatch, inputs };
}

/** Sampling parameters of each prompt. @throws BroomwagonError VALIDATION_FAILED */
function parseSamplings(given: unknown, count: number, isList: boolean, headers: IncomingHttpHeaders) {
  const canResume = wantsResume(headers);
  const parseSampling = (value: unknown) => {
    const {
      max_new_tokens: maxTokens = DEFAULT_MAX_NEW_TOKENS,
      n = 1,
      ...fields
    } = parseObject(value, 'sampling_params');
    if (!isCount(maxTokens, 1, LIMITS.maxTokens)) {
      throw invalidField('sampling_params.max_new_tokens', `must be a whole number from 1 to ${LIMITS.maxTokens}`);
    }
    const { known, unknown } = splitSampling(fields, SAMPLING_NAMES, false);
    const isContinuable = canResume && !UNCONTINUED_SAMPLING.some((name) => isSet(unknown[name]));
    return { known, unknown, n, maxTokens: maxTokens as number, isContinuable };
  };
  if (!Array.isArray(given)) return Array<ReturnType<typeof parseSampling>>(count).fill(parseSampling(given));
  if (isList && given.length === count) return given.map((one: unknown) => parseSampling(one ?? undefined));
  throw invalidField('sampling_params', 'as a list must have the parameters of each prompt of a list');
}

/** Whether the engine answers with values that a continued call would not have. */
function hasValuesOfCall(fields: Record<string, unknown>): boolean {
  const { logprob_start_len: start } = fields;
  return UNCONTINUED_FIELDS.some((name) => isSet(fields[name])) || (typeof start === 'number' && start >= 0);
}

function fieldsAt(fields: Record<string, unknown>, index: number, count: number): Record<string, unknown> {
  const entries = Object.entries(fields).map(([name, value]) => [name, valueAt(name, value, index, count)]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

/** The value of a field for one prompt of a batch: a list has a value for each prompt. */
function valueAt(name: string, value: unknown, index: number, count: number): unknown {
  // A list of token ids is one value.
  if (!Array.isArray(value) || (name === 'token_ids_logprob' && !Array.isArray(value[0]))) return value;
  if (value.length !== count) throw invalidField(name, `must have a value for each of the ${count} prompts`);
  return value[index] as unknown;
}
