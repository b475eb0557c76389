import { BroomwagonError, isBroomwagonError, isMultimodal } from '@broomwagon/contracts';
import {
  type EngineAdapter,
  type GenerationRequest,
  randomEngineRequestId,
  requestedModel,
  sampleSeed,
} from '@broomwagon/engines';
import { countContextTokens, type Lease, type LeaseRequest } from '@broomwagon/generation';
import { boundSession } from './bound-session';
import type { Generation } from './generation';
import type { GenerationEnd } from './response-parts';

/**
 * Ways to continue a response with its tokens. `parsed-at-end`: a chat with more than content. The engine does not
 * parse the tokens of a call with token ids, so the whole message is parsed at its end.
 */
type Continuation = 'exact' | 'parsed-at-end';

/** @returns undefined if the response starts again, or ends with the error */
export function buildContinuation(generation: Generation): Continuation | undefined {
  const { tokens, input, needsLogprobs } = generation;
  const { message, allIds } = tokens;
  if (!input.isContinued || (needsLogprobs && tokens.allLogprobs === undefined)) return undefined;
  if (message === undefined) {
    // Without texts it is unknown whether a stop text crosses the cut.
    if ((input.sampling.stop ?? []).length > 0 && tokens.count > 0 && tokens.text === '') return undefined;
    return input.prompt.promptTokenIds === undefined || allIds !== undefined ? 'exact' : undefined;
  }
  if (getPromptIds(generation) === undefined) return undefined;
  if (message.isInContent && !input.hasTools) return 'exact';
  // Tokens that are parsed at the end include the tokens of the stop text.
  return (input.sampling.stop ?? []).length > 0 ? undefined : 'parsed-at-end';
}

/**
 * Whether a response may move to another engine. A response that cannot be continued exactly on every engine runs to
 * its end at its present engine.
 */
export function isMovable(generation: Generation): boolean {
  if (generation.input.passed !== undefined) return false;
  return generation.tokens.count === 0 || buildContinuation(generation) === 'exact';
}

/**
 * Whether a response may be cut for new weights. A response that would lose its tokens, such as structured output, is
 * not cut.
 */
export function isCuttable(generation: Generation): boolean {
  if (generation.input.passed !== undefined) return false;
  return generation.tokens.count === 0 || buildContinuation(generation) !== undefined;
}

/** Prepares a repeated call. @returns the end, if the tokens so far can neither be continued nor generated again */
export function prepareRepeat(generation: Generation, error?: Error): GenerationEnd | undefined {
  const { count, message } = generation.tokens;
  if (generation.answer !== undefined) return beginAgain(generation, error);
  if (count === 0) return undefined;
  const continuation = buildContinuation(generation);
  if (continuation === undefined) return beginAgain(generation, error);
  if (message !== undefined) message.isParsedAtEnd = continuation === 'parsed-at-end';
  return undefined;
}

/**
 * Prepares the next call of a response. Tokens of a chat are kept only if the engine of the next call can parse chats.
 * @returns the end, if the tokens so far can neither be continued nor generated again
 */
export async function prepareCall(generation: Generation, engine: EngineAdapter): Promise<GenerationEnd | undefined> {
  const end = prepareRepeat(generation);
  if (end !== undefined || generation.tokens.message?.isParsedAtEnd !== true) return end;
  // An engine that does not answer fails the call too, and the tokens are kept for the next engine.
  const canParse = await engine.canParseChats().catch(() => true);
  return canParse ? undefined : beginAgain(generation);
}

/**
 * Parses the message of a chat that is parsed at its end. Without `end`, the response is generated again. If the
 * message of an aborted chat cannot be parsed, the chat ends with the parts and token ids so far, and `error`.
 */
export async function parseAtEnd(
  generation: Generation,
  engine: EngineAdapter,
  end: GenerationEnd,
): Promise<{ end?: GenerationEnd; error?: Error }> {
  const { tokens, input } = generation;
  const { promptTokenIds } = generation.report;
  const { message, text, allIds } = tokens;
  if (message?.isParsedAtEnd !== true || end.reason === 'error') return { end };
  let error: Error;
  try {
    const { prompt } = input;
    const { reason: finishReason } = end;
    const chat = { prompt, promptTokenIds: promptTokenIds!, tokenIds: allIds!, text, finishReason };
    if (message.settle(await engine.parseChat(chat), generation.isSent)) return { end };
    error = new BroomwagonError('ENGINE_PROTOCOL', 'The parsed message does not begin with what was sent of it');
  } catch (cause) {
    error = cause as Error;
  }
  return { end: end.reason === 'abort' ? end : beginAgain(generation, error), error };
}

/** Removes all tokens, or ends the response if some were sent to the client. */
function beginAgain(generation: Generation, error?: Error): GenerationEnd | undefined {
  if (generation.isSent) {
    const reason = 'The call ended early, and this request cannot be continued exactly';
    return { reason: 'error', error: error ? asOurs(error) : new BroomwagonError('ENGINE_ERROR', reason) };
  }
  generation.restart();
  return undefined;
}

/** Ids of the prompt of a continued call; undefined if the response has no ids, or the prompt has more than text. */
function getPromptIds({ tokens, report, input: { prompt } }: Generation): number[] | undefined {
  return tokens.allIds === undefined || isMultimodal(prompt) ? undefined : report.promptTokenIds;
}

export function asOurs(error: Error): BroomwagonError {
  return isBroomwagonError(error) ? error : new BroomwagonError('INTERNAL', 'The generation failed; see the log');
}

/** The next call of an engine, with all tokens so far. */
export function buildEngineRequest(generation: Generation, { dialect }: Lease): GenerationRequest {
  const { tokens, input, needsLogprobs } = generation;
  const { maxTokens } = input;
  const promptTokenIds = tokens.count === 0 ? undefined : getPromptIds(generation);
  // `/generate` of SGLang returns the texts of the tokens of a chat only with this field.
  const hasTokenTexts = tokens.message !== undefined && input.sampling.logprobs === true && dialect === 'sglang';
  const { engineFields: given } = input.prompt;
  const engineFields = hasTokenTexts ? Object.assign({}, given, { return_text_in_logprobs: true }) : given;
  const prompt =
    promptTokenIds === undefined ? Object.assign({}, input.prompt, { engineFields }) : { promptTokenIds, engineFields };
  const { seed } = input.sampling;
  // SGLang makes random numbers from seed and position; other engines would draw the numbers of the first call again.
  const isDerived = seed !== undefined && tokens.count > 0 && dialect !== 'sglang';
  const sampling = Object.assign(
    {},
    input.sampling,
    needsLogprobs && { logprobs: true },
    isDerived && { seed: sampleSeed(seed, { job: '', groupId: '', sampleIndex: 0, madeTokens: tokens.count }) },
  );
  const made =
    tokens.count === 0 ? undefined : { tokenCount: tokens.count, tokenIds: tokens.allIds, text: tokens.text };
  const sessionId = toBound(input.placement.sessionId, generation);
  return { engineRequestId: randomEngineRequestId(), prompt, sampling, maxTokens, made, sessionId };
}

/**
 * @param avoidServers servers that are used only if no other server can take the request
 * @param excludeServers servers that are not used
 */
export function buildLeaseRequest(
  generation: Generation,
  avoidServers: LeaseRequest['avoidServers'],
  excludeServers?: LeaseRequest['excludeServers'],
): LeaseRequest {
  const { id, tokens, input } = generation;
  const { placement, prompt } = input;
  const { sessionId, parentSessionId, ...others } = placement;
  return {
    sessionId: toBound(sessionId, generation),
    parentSessionId: toBound(parentSessionId, generation),
    requestId: id,
    model: requestedModel(prompt),
    contextTokens: countContextTokens(prompt, tokens.count),
    avoidServers,
    excludeServers,
    ...others,
  };
}

function toBound(session: string | undefined, { tokenId }: Generation): string | undefined {
  return session === undefined ? undefined : boundSession(session, tokenId);
}
