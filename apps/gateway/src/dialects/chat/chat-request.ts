import type { IncomingHttpHeaders } from 'node:http';
import { findPromptFault, invalidField, LIMITS, type Prompt } from '@broomwagon/contracts';
import type { GenerationRequest } from '../../answers/generation-responder';
import { continuesEngineAborts, parsePlacement, wantsResume } from '../../answers/placement';
import { isCount, isSet, parseObject, splitSampling, withoutNulls } from '../../fields/read-fields';
import { parseRequestId } from '../../answers/request-id';
import type { Caller } from '../../keys/api-keys';
import { REFUSED_SAMPLING, SAMPLING_NAMES, UNCONTINUED } from '../vllm/vllm-sampling';
import type { ChatShape } from './chat-reply';

const MAX_CHOICES = LIMITS.samplesPerGroup;
const MAX_TOP_LOGPROBS = 20;
const REFUSED = [...REFUSED_SAMPLING, 'echo'];

interface Tool {
  function?: { strict?: unknown };
}

/** A request of `/v1/chat/completions`. @throws BroomwagonError VALIDATION_FAILED */
export function readChatRequest(
  body: Record<string, unknown>,
  headers: IncomingHttpHeaders,
  caller: Caller,
): GenerationRequest & { shape: ChatShape } {
  const {
    request_id: requestId,
    messages,
    max_tokens: olderBudget,
    max_completion_tokens: maxTokens = olderBudget,
    n = 1,
    logprobs = false,
    stream,
    stream_options: streamOptions,
    session_id: session,
    return_token_ids: hasTokenIds,
    ...others
  } = withoutNulls(body);
  const { model, top_logprobs: topLogprobs = 0 } = others;
  if (model !== undefined && typeof model !== 'string') throw invalidField('model', 'must be a text');
  if (maxTokens !== undefined && !isCount(maxTokens, 1, LIMITS.maxTokens)) {
    const field = olderBudget === maxTokens ? 'max_tokens' : 'max_completion_tokens';
    throw invalidField(field, `must be a whole number from 1 to ${LIMITS.maxTokens}`);
  }
  if (!isCount(n, 1, MAX_CHOICES)) throw invalidField('n', `must be a whole number from 1 to ${MAX_CHOICES}`);
  if (typeof logprobs !== 'boolean') throw invalidField('logprobs', 'must be true or false');
  if (!isCount(topLogprobs, 0, logprobs ? MAX_TOP_LOGPROBS : 0)) {
    throw invalidField('top_logprobs', `must be a whole number from 0 to ${MAX_TOP_LOGPROBS}, and needs logprobs`);
  }
  for (const name of REFUSED) if (isSet(others[name])) throw invalidField(name, 'is not supported');
  if (others.tools !== undefined && !Array.isArray(others.tools)) throw invalidField('tools', 'must be a list');
  const { known, unknown } = splitSampling(others, SAMPLING_NAMES, logprobs, '');
  const { include_usage: hasUsage, continuous_usage_stats: hasContinuousUsage } = parseObject(
    streamOptions,
    'stream_options',
  );
  const id = parseRequestId(requestId, 'request_id', headers, MAX_CHOICES);
  const prompt = { ...parsePrompt(messages), ...(isSet(unknown) && { engineFields: unknown }) };
  const hasTools = isSet(unknown.tools) && unknown.tool_choice !== 'none';
  const input = {
    prompt,
    maxTokens: (maxTokens as number | undefined) ?? Infinity,
    keepsStop: unknown.include_stop_str_in_output === true,
    isContinued:
      wantsResume(headers) && !(hasTools && isGuided(unknown)) && !UNCONTINUED.some((name) => isSet(unknown[name])),
    hasTools,
    continuesEngineAborts: continuesEngineAborts(headers),
    placement: parsePlacement(headers, caller, session),
  };
  return {
    ...id,
    stream: stream === true,
    inputs: Array.from({ length: n as number }, (_, choice) => ({
      ...input,
      // Each choice gets another seed, as in vLLM: choices with one seed would be equal.
      sampling: known.seed === undefined ? known : { ...known, seed: known.seed + choice },
    })),
    shape: {
      model,
      hasTokenIds: hasTokenIds === true,
      hasUsage: hasUsage === true,
      hasContinuousUsage: hasContinuousUsage === true,
    },
  };
}

/** Whether the engine lets the model generate only tool calls, or arguments of a schema. */
function isGuided({ tools, tool_choice: choice = 'auto' }: Record<string, unknown>): boolean {
  return choice !== 'auto' || (tools as Tool[]).some((tool) => tool?.function?.strict === true);
}

function parsePrompt(messages: unknown): Prompt {
  if (messages === undefined) throw invalidField('messages', 'is missing');
  const fault = findPromptFault({ messages });
  if (fault) throw invalidField(fault.field || 'messages', fault.reason);
  return { messages: messages as Prompt['messages'] };
}
