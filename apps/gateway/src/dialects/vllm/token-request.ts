import type { IncomingHttpHeaders } from 'node:http';
import { findPromptFault, invalidField, LIMITS } from '@broomwagon/contracts';
import type { GenerationRequest } from '../../answers/generation-responder';
import { continuesEngineAborts, parsePlacement, wantsResume } from '../../answers/placement';
import { isCount, isSet, parseObject, splitSampling, withoutNulls } from '../../fields/read-fields';
import { parseRequestId } from '../../answers/request-id';
import type { Caller } from '../../keys/api-keys';
import { SAMPLING_NAMES, UNCONTINUED } from './vllm-sampling';

/**
 * Reads a request of `/inference/v1/generate` that is not passed on, see `passed-tokens.ts`.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function readTokenRequest(
  body: Record<string, unknown>,
  headers: IncomingHttpHeaders,
  caller: Caller,
): GenerationRequest {
  const {
    request_id: requestId,
    token_ids: promptTokenIds,
    sampling_params: samplingParams,
    stream,
    session_id: session,
    stream_options: _usage,
    output_mode: _mode,
    return_token_ids: _ids,
    ...others
  } = withoutNulls(body);
  const sampling = parseObject(samplingParams, 'sampling_params');
  const {
    max_tokens: maxTokens,
    logprobs,
    n: _one,
    detokenize: _text,
    output_kind: _kind,
    ...samplingFields
  } = sampling;
  if (maxTokens !== undefined && !isCount(maxTokens, 1, LIMITS.maxTokens)) {
    throw invalidField('sampling_params.max_tokens', `must be a whole number from 1 to ${LIMITS.maxTokens}`);
  }
  if (promptTokenIds === undefined) throw invalidField('token_ids', 'is missing');
  const fault = findPromptFault({ promptTokenIds });
  if (fault) throw invalidField('token_ids', fault.reason);
  const { known, unknown } = splitSampling(samplingFields, SAMPLING_NAMES, logprobs !== undefined);
  const engineFields = { ...others, ...unknown };
  return {
    ...parseRequestId(requestId, 'request_id', headers),
    stream: stream === true,
    inputs: [
      {
        prompt: { promptTokenIds: promptTokenIds as number[], ...(isSet(engineFields) && { engineFields }) },
        sampling: known,
        // The default is no limit, as in this route of vLLM; `/v1/completions` has a default limit.
        maxTokens: (maxTokens as number | undefined) ?? Infinity,
        keepsStop: unknown.include_stop_str_in_output === true,
        isContinued: wantsResume(headers) && !UNCONTINUED.some((name) => isSet(unknown[name])),
        continuesEngineAborts: continuesEngineAborts(headers),
        placement: parsePlacement(headers, caller, session),
      },
    ],
  };
}
