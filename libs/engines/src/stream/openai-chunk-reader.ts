import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineChoice, TokenIncrement } from '../engine-adapter';
import { toFinishReason, unknownFields, type ChunkReader, type StreamStep } from './chunk-reader';

/** Fields that are read here, or that do not describe the response. */
// prettier-ignore
const EVENT_FIELDS = new Set([
  'id', 'object', 'created', 'model', 'choices', 'usage', 'error', 'system_fingerprint', 'request_id',
]);
const CHOICE_FIELDS = new Set(['index', 'text', 'delta', 'token_ids', 'logprobs', 'finish_reason', 'stop_reason']);
const DELTA_FIELDS = new Set(['role', 'content', 'reasoning_content', 'reasoning']);

/** Characters by which a repeated text is recognized. */
const HEAD_LENGTH = 64;

interface Delta {
  content?: string | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
}

interface OpenAiUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number } | null;
}

/**
 * Reads chunks of `/v1/completions` and `/v1/chat/completions`. Tokens are counted by their ids, else by the usage in
 * the chunk, else by their log probabilities, else as one for each chunk with a part of the response.
 */
export class OpenAiChunkReader implements ChunkReader {
  private counted = 0;
  /** Tokens without ids are missing: the chunks of a completion have ids, or the chunk of an abort was dropped. */
  private areMissing = false;
  /** The engine has ended the response: a later count is that of the whole response. */
  private hasEnded = false;
  /** Begin and length of the text so far, by which a chunk that repeats the text is recognized. */
  private head = '';
  private textLength = 0;
  /** Unknown fields of earlier chunks. */
  private readonly given = { fields: {}, choiceFields: {} };

  read(event: Record<string, unknown>): StreamStep {
    const choices = event.choices as EngineChoice[] | undefined;
    // The event is neither a chunk nor the usage: its fields do not belong to the response.
    if (choices === undefined && !event.usage) return {};
    const choice = choices?.[0];
    const usage = (event.usage ?? undefined) as OpenAiUsage | undefined;
    const promptTokenIds = (event.prompt_token_ids as number[] | undefined) ?? choice?.prompt_token_ids ?? undefined;
    const finishReason = choice?.finish_reason ? toFinishReason(choice.finish_reason) : undefined;
    const lostTokens = finishReason === 'aborted' ? this.findLost(choice!, usage) : undefined;
    this.areMissing ||= lostTokens !== undefined;
    const step: StreamStep =
      lostTokens === undefined
        ? { increment: this.increment(choice, usage, promptTokenIds) }
        : { lostTokens, stopReason: 'The chunk of the abort contradicts the chunks before: its tokens are lost' };
    if (choice?.finish_reason) {
      step.finishReason = finishReason;
      step.engineFinishReason = choice.finish_reason;
      const plain = choice.finish_reason === 'stop' || choice.finish_reason === 'length';
      const matched = choice.stop_reason ?? choice.matched_stop;
      step.stopReason ??= matched ?? (plain ? undefined : choice.finish_reason);
    }
    this.hasEnded ||= finishReason === 'stop' || finishReason === 'length';
    const fields = unknownFields(event, EVENT_FIELDS, this.given.fields);
    const choiceFields = unknownFields(choice, CHOICE_FIELDS, this.given.choiceFields);
    const pieces = unknownFields(choice?.delta ?? undefined, DELTA_FIELDS);
    if (fields || choiceFields || pieces) step.engineFields = { whole: { ...fields, ...choiceFields }, pieces };
    if (usage) {
      const cachedTokens = usage.prompt_tokens_details?.cached_tokens;
      step.usage = {
        promptTokens: usage.prompt_tokens ?? 0,
        completionTokens: usage.completion_tokens ?? 0,
        ...(cachedTokens && { cachedTokens }),
      };
    }
    return step;
  }

  /**
   * Finds out whether the chunk of an abort repeats tokens or text, or lacks tokens that it counts.
   * @returns tokens that are lost without the chunk; undefined: the chunk continues the response
   */
  private findLost(choice: EngineChoice, usage: OpenAiUsage | undefined): number | undefined {
    const { token_ids: tokenIds } = choice;
    const reported = usage?.completion_tokens === undefined ? undefined : usage.completion_tokens - this.counted;
    const text = toText(choice);
    const isRepeated = this.textLength > 0 && text.length >= this.textLength && text.startsWith(this.head);
    const isContrary = tokenIds && reported !== undefined && choice.text !== undefined && tokenIds.length !== reported;
    const sent = (tokenIds?.length ?? 0) - (isRepeated ? this.counted : 0);
    return isRepeated || isContrary ? Math.max(0, reported ?? sent) : undefined;
  }

  private increment(
    choice: EngineChoice | undefined,
    usage: OpenAiUsage | undefined,
    promptTokenIds: number[] | undefined,
  ): TokenIncrement {
    const delta = choice?.delta as Delta | undefined;
    const text = choice === undefined ? '' : toText(choice);
    if (this.head.length < HEAD_LENGTH) this.head += text.slice(0, HEAD_LENGTH - this.head.length);
    this.textLength += text.length;
    const tokenIds = choice?.token_ids ?? undefined;
    const logprobs = choice?.logprobs?.token_logprobs ?? choice?.logprobs?.content?.map((entry) => entry.logprob);
    let tokenCount = text === '' && !hasParts(delta) ? 0 : 1;
    const reported = usage?.completion_tokens === undefined ? undefined : usage.completion_tokens - this.counted;
    // Tokens that the engine has counted and not sent have no ids: AttemptTokens counts them as missing.
    if (choice === undefined && this.areMissing && !this.hasEnded) return { text, tokenCount: 0, promptTokenIds };
    if (tokenIds) {
      this.areMissing ||= choice?.text !== undefined;
      // A parser of tool calls may have kept ids back: without all ids the response has none.
      tokenCount = Math.max(tokenIds.length, reported ?? 0);
      if (tokenCount > tokenIds.length && choice?.text !== undefined) {
        const counts = `counts ${tokenCount} tokens in an event and sent ${tokenIds.length} token ids`;
        throw new BroomwagonError('ENGINE_PROTOCOL', `The engine ${counts}`);
      }
    } else if (reported !== undefined) tokenCount = Math.max(0, reported);
    else if (logprobs !== undefined && logprobs.length > 0) tokenCount = logprobs.length;
    this.counted += tokenCount;
    return { text, tokenCount, tokenIds, logprobs, promptTokenIds, choice };
  }
}

function toText({ text, delta }: EngineChoice): string {
  const { reasoning_content: reasoning, reasoning: other, content } = (delta ?? {}) as Delta;
  return text ?? `${reasoning ?? other ?? ''}${content ?? ''}`;
}

/** A delta that has more than a role, such as a piece of a tool call. */
function hasParts(delta: object | undefined): boolean {
  return Object.entries(delta ?? {}).some(([name, value]) => {
    const isEmpty = value === null || value === '' || (Array.isArray(value) && value.length === 0);
    return name !== 'role' && !isEmpty;
  });
}
