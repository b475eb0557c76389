import type { IncomingHttpHeaders } from 'node:http';
import { invalidField, LIMITS } from '@broomwagon/contracts';
import type { GenerationRequest } from '../../answers/generation-responder';
import { continuesEngineAborts, parsePlacement, wantsResume } from '../../answers/placement';
import { parseChoiceCount, MAX_CHOICES, parsePrompts } from '../../answers/prompts';
import { isCount, isSet, parseObject, splitSampling, withoutNulls } from '../../fields/read-fields';
import { parseRequestId } from '../../answers/request-id';
import type { Caller } from '../../keys/api-keys';
import type { CompletionShape } from './completion-reply';
import { MAX_LOGPROBS } from './passed-completion';
import { SAMPLING_NAMES, UNCONTINUED } from './vllm-sampling';

/** Maximum tokens of a response without `max_tokens`, as in the API of OpenAI and vLLM. */
const DEFAULT_MAX_TOKENS = 16;

/**
 * Reads a request of `/v1/completions` that is not passed on, see `passed-completion.ts`.
 * @throws BroomwagonError VALIDATION_FAILED
 */
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
    return_tokens_as_token_ids: asIds,
    ...others
  } = withoutNulls(body);
  const { model } = others;
  if (model !== undefined && typeof model !== 'string') throw invalidField('model', 'must be a text');
  if (!isCount(maxTokens, 1, LIMITS.maxTokens)) {
    throw invalidField('max_tokens', `must be a whole number from 1 to ${LIMITS.maxTokens}`);
  }
  if (logprobs !== undefined && !isCount(logprobs, 0, MAX_LOGPROBS)) {
    throw invalidField('logprobs', `must be a whole number from 0 to ${MAX_LOGPROBS}`);
  }
  const { prompts } = parsePrompts(prompt, 'prompt');
  const choicesPerPrompt = parseChoiceCount(n, prompts, 'n');
  const { known, unknown } = splitSampling(others, SAMPLING_NAMES, logprobs !== undefined, '');
  const hasNames = logprobs !== undefined && !(asIds === true && logprobs === 0);
  // Engines receive the number of alternatives in the field of a chat.
  const engineFields = {
    ...unknown,
    ...(hasNames && { top_logprobs: logprobs, ...(asIds === true && { return_tokens_as_token_ids: true }) }),
  };
  const { include_usage: hasUsage, continuous_usage_stats: hasContinuousUsage } = parseObject(
    streamOptions,
    'stream_options',
  );
  const id = parseRequestId(requestId, 'request_id', headers, MAX_CHOICES);
  const shared = {
    maxTokens: maxTokens as number,
    hasNames,
    keepsStop: unknown.include_stop_str_in_output === true,
    isContinued: wantsResume(headers) && !UNCONTINUED.some((name) => isSet(unknown[name])),
    continuesEngineAborts: continuesEngineAborts(headers),
    placement: parsePlacement(headers, caller, session),
  };
  return {
    ...id,
    stream: stream === true,
    inputs: prompts.flatMap((one) =>
      Array.from({ length: choicesPerPrompt }, (_, choice) => ({
        ...shared,
        prompt: { ...one, ...(isSet(engineFields) && { engineFields }) },
        // Each choice gets another seed, as in vLLM: choices of one prompt with one seed would be equal.
        sampling: known.seed === undefined ? known : { ...known, seed: known.seed + choice },
      })),
    ),
    shape: {
      model,
      choicesPerPrompt,
      hasTokenIds: hasTokenIds === true,
      hasUsage: hasUsage === true,
      hasContinuousUsage: hasContinuousUsage === true,
    },
  };
}
