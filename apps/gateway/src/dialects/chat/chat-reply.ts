import type { Generation } from '../../core/generation';
import { BEGIN, type Format, type Position } from '../../answers/format';
import { toModelName, sumUsage } from '../vllm/choice-fields';

/** Options of an answer of `/v1/chat/completions`. */
export interface ChatShape {
  /** Name that the client has sent; absent: the name of the engine. */
  model?: string;
  hasTokenIds: boolean;
  /** Streams end with a chunk of the usage. */
  hasUsage: boolean;
  /** Each chunk of a stream has the usage of its choice so far. */
  hasContinuousUsage: boolean;
}

/** Answers of `/v1/chat/completions` with the further fields of vLLM. */
export class ChatFormat implements Format {
  private readonly createdAt = Math.floor(Date.now() / 1_000);

  constructor(
    private readonly id: string,
    private readonly shape: ChatShape,
  ) {}

  whole(generations: Generation[]): object {
    const choices = generations.map((generation, index) =>
      this.choice(generation, BEGIN, index, { message: generation.tokens.message!.whole() }),
    );
    const more = { usage: toChatUsage(generations), ...this.promptIds(generations[0]!) };
    return this.answer(generations[0]!, 'chat.completion', choices, more);
  }

  /**
   * The first chunk has only the role, as in the API of OpenAI: the client of OpenAI counts log probabilities of this
   * chunk twice.
   */
  chunk(generation: Generation, from: Position, index: number): object {
    const usage = this.shape.hasContinuousUsage && { usage: toChatUsage([generation]) };
    const delta = generation.tokens.message!.after(from.message);
    const choices = [this.choice(generation, from, index, { delta })];
    const chunk = this.answer(generation, 'chat.completion.chunk', choices, { ...usage });
    if (from !== BEGIN) return chunk;
    const role = { index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null };
    return [this.answer(generation, 'chat.completion.chunk', [role], this.promptIds(generation)), chunk];
  }

  trailer(generations: Generation[]): object | undefined {
    if (!this.shape.hasUsage) return undefined;
    return this.answer(generations[0]!, 'chat.completion.chunk', [], { usage: toChatUsage(generations) });
  }

  private answer(generation: Generation, object: string, choices: object[], more: object): object {
    const { createdAt: created, shape } = this;
    const model = toModelName(shape.model, generation);
    return { id: `chatcmpl-${this.id}`, object, created, model, choices, ...more };
  }

  private choice(generation: Generation, from: Position, index: number, part: object): object {
    const { tokens, input } = generation;
    const logprobs = input.sampling.logprobs ? { content: tokens.message!.logprobs.slice(from.tokens) } : null;
    return {
      ...toChoiceFields(generation),
      index,
      ...part,
      logprobs,
      ...toFinishFields(generation),
      ...(this.shape.hasTokenIds && { token_ids: tokens.idsFrom(from.tokens) ?? null }),
    };
  }

  private promptIds({ report: { promptTokenIds } }: Generation): object {
    return this.shape.hasTokenIds && promptTokenIds !== undefined ? { prompt_token_ids: promptTokenIds } : {};
  }
}

/** Reason why the engine or the gateway ended the message: `tool_calls`, `stop`, `length`, `abort`. */
export function getFinishReason({ end, tokens }: Generation): string | null {
  if (end === undefined) return null;
  if (end.reason !== 'stop' || tokens.matched !== undefined) return end.reason;
  return tokens.message?.finishReason ?? 'stop';
}

/** The text or token that ended the message. */
export function getMatchedStop({ end, input }: Generation): string | number | undefined {
  const matched = end?.reason === 'stop' ? end.matched : undefined;
  // Engines also report reasons of their own in this field.
  return typeof matched === 'string' && !input.sampling.stop?.includes(matched) ? undefined : matched;
}

/** Usage of all choices; the tokens of their common prompt count once. */
export function toChatUsage(choices: Generation[]): object {
  const { cachedTokens } = choices[0]!.report;
  return {
    ...sumUsage(choices, [choices[0]!]),
    ...(cachedTokens && { prompt_tokens_details: { cached_tokens: cachedTokens } }),
  };
}

function toFinishFields(generation: Generation): object {
  const reason = getFinishReason(generation);
  if (reason === null) return { finish_reason: null };
  return {
    finish_reason: reason,
    stop_reason: getMatchedStop(generation) ?? null,
    weight_versions: generation.report.spans,
  };
}

/** Fields of the engine that are not parts of the message. */
function toChoiceFields({ report, tokens }: Generation): object {
  const inMessage = tokens.message!.after();
  return Object.fromEntries(
    Object.entries(report.fields).filter(([name]) => name !== 'prompt_token_ids' && !Object.hasOwn(inMessage, name)),
  );
}
