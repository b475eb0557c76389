import type { IncomingHttpHeaders } from 'node:http';
import { findPromptFault, invalidField, LIMITS, type Prompt } from '@broomwagon/contracts';
import type { GenerationRequest } from '../http/generation-responder';
import { placementOf, textOf } from '../http/placement';
import { idOf, isCount, isSet, objectOf, splitSampling, withoutNulls } from '../http/read-fields';
import type { Caller } from '../keys/api-keys';
import type { CompletionShape } from './completion-reply';
import { isLogprobCount, REFUSED_SAMPLING, SAMPLING_NAMES, UNCONTINUED } from './vllm-sampling';

/** Tokens of a response without `max_tokens`, as in the API of OpenAI and vLLM. */
const DEFAULT_MAX_TOKENS = 16;
/** Choices of one request, those of all its prompts. */
const MAX_CHOICES = LIMITS.samplesPerGroup;
const REFUSED = [...REFUSED_SAMPLING, 'echo', 'suffix', 'prompt_embeds'];

/** A request of `/v1/completions`. @throws BroomwagonError VALIDATION_FAILED */
export function readCompletionRequest(
  body: Record<string, unknown>,
  headers: IncomingHttpHeaders,
  caller: Caller,
): GenerationRequest & { shape: CompletionShape } {
  const {
    request_id: requestId,
    prompt,
    max_tokens: maxTokens = DEFAULT_MAX_TOKENS,
    n = 1,
    logprobs,
    stream,
    stream_options: streamOptions,
    session_id: session,
    return_token_ids: hasTokenIds,
    return_tokens_as_token_ids: _names,
    ...others
  } = withoutNulls(body);
  const { model } = others;
  if (model !== undefined && typeof model !== 'string') throw invalidField('model', 'must be a text');
  if (!isCount(maxTokens, 1, LIMITS.maxTokens)) {
    throw invalidField('max_tokens', `must be a whole number from 1 to ${LIMITS.maxTokens}`);
  }
  if (!isLogprobCount(logprobs)) {
    throw invalidField('logprobs', 'must be 0 or 1: only the chosen token has a log probability');
  }
  for (const name of REFUSED) if (isSet(others[name])) throw invalidField(name, 'is not supported');
  const prompts = promptsOf(prompt);
  if (!isCount(n, 1, Math.floor(MAX_CHOICES / prompts.length))) {
    throw invalidField('n', `must be a whole number from 1, with at most ${MAX_CHOICES} choices of all prompts`);
  }
  const { known, unknown } = splitSampling(others, SAMPLING_NAMES, logprobs !== undefined, '');
  const { include_usage: hasUsage, continuous_usage_stats: hasContinuousUsage } = objectOf(
    streamOptions,
    'stream_options',
  );
  const id = idOf(requestId ?? textOf(headers, 'x-request-id'), 'request_id');
  // The longest id of its choices.
  idOf(`${id.id}-${MAX_CHOICES}`, 'request_id');
  const choicesPerPrompt = n as number;
  const shared = {
    maxTokens: maxTokens as number,
    keepsStop: unknown.include_stop_str_in_output === true,
    isContinued: textOf(headers, 'x-broomwagon-resume') !== 'off' && !UNCONTINUED.some((name) => isSet(unknown[name])),
    continuesEngineAborts: textOf(headers, 'x-broomwagon-on-engine-abort') === 'resume',
    placement: placementOf(headers, caller, session),
  };
  return {
    ...id,
    stream: stream === true,
    inputs: prompts.flatMap((one) =>
      Array.from({ length: choicesPerPrompt }, (_, choice) => ({
        ...shared,
        prompt: { ...one, ...(isSet(unknown) && { engineFields: unknown }) },
        // As in vLLM: choices of one prompt with one seed would be the same.
        sampling: known.seed === undefined ? known : { ...known, seed: known.seed + choice },
      })),
    ),
    shape: {
      model: model ?? 'default',
      choicesPerPrompt,
      hasTokenIds: hasTokenIds === true,
      hasUsage: hasUsage === true,
      hasContinuousUsage: hasContinuousUsage === true,
    },
  };
}

/** A text, token ids, or a list of one of these. */
function promptsOf(prompt: unknown): Prompt[] {
  if (prompt === undefined) throw invalidField('prompt', 'is missing');
  const isList = Array.isArray(prompt) && typeof prompt[0] !== 'number';
  const prompts = isList ? (prompt as unknown[]) : [prompt];
  if (prompts.length === 0 || prompts.length > MAX_CHOICES) {
    throw invalidField('prompt', `must be 1 to ${MAX_CHOICES} prompts`);
  }
  return prompts.map((one) => {
    const given = typeof one === 'string' ? { text: one } : { promptTokenIds: one };
    const fault = findPromptFault(given);
    if (fault) throw invalidField('prompt', fault.reason);
    return given as Prompt;
  });
}
