import type { BroomwagonError } from '@broomwagon/contracts';
import { getFinishReason, getMatchedStop } from '../chat/chat-reply';
import { type MessagePart, toMessageParts } from '../chat/message-parts';
import type { Generation } from '../../core/generation';
import { BEGIN, type Format, type Position } from '../../answers/format';
import { toHttpStatus } from '../../http/send-json';
import { toModelName } from '../vllm/choice-fields';

const STOP_REASONS: Record<string, string> = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' };
const ERROR_TYPES: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

/** Answers of `/v1/messages`; each request needs its own instance, which counts the blocks of a stream. */
export class MessagesFormat implements Format {
  readonly hasNamedEvents = true;
  /** Number and type of the last block of the stream. */
  private index = -1;
  private open: string | undefined;

  constructor(
    private readonly id: string,
    private readonly model?: string,
  ) {}

  whole([generation]: Generation[]): object {
    const content = toMessageParts(generation!.tokens.message!.after()).map(toBlock);
    return this.message(generation!, content);
  }

  chunk(generation: Generation, from: Position): object[] {
    const events: object[] = [];
    if (from === BEGIN) {
      // The response may have ended already, but only the last events have its end.
      const message = Object.assign(this.message(generation, []), { stop_reason: null, stop_sequence: null });
      events.push({ type: 'message_start', message });
    }
    for (const part of toMessageParts(generation.tokens.message!.after(from.message))) {
      const key = part.kind === 'call' ? `call-${part.index}` : part.kind;
      if (key !== this.open) events.push(...this.close(), this.begin(key, part));
      events.push({ type: 'content_block_delta', index: this.index, delta: toDelta(part) });
    }
    if (generation.end === undefined) return events;
    const delta = toStopFields(generation);
    events.push(
      ...this.close(),
      { type: 'message_delta', delta, usage: toUsage(generation) },
      { type: 'message_stop' },
    );
    return events;
  }

  failure(error: BroomwagonError): object {
    return { type: 'error', error: messagesError(error) };
  }

  private begin(key: string, part: MessagePart): object {
    this.open = key;
    this.index += 1;
    const block = { ...toBlock({ ...part, text: '' }), ...(part.kind === 'call' && { input: {} }) };
    return { type: 'content_block_start', index: this.index, content_block: block };
  }

  private close(): object[] {
    const isOpen = this.open !== undefined;
    this.open = undefined;
    return isOpen ? [{ type: 'content_block_stop', index: this.index }] : [];
  }

  private message(generation: Generation, content: object[]): object {
    const usage = toUsage(generation);
    const model = toModelName(this.model, generation);
    const about = { id: `msg_${this.id}`, type: 'message', role: 'assistant', model };
    return { ...about, content, ...toStopFields(generation), usage };
  }
}

/** An error in the form of the API of Anthropic, with the further fields `code`, `param` and `retryable`. */
export function messagesError(error: BroomwagonError): object {
  const { code, message, field, retryable } = error;
  const status = toHttpStatus(error);
  const type = ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
  // Agents shorten their context if the message begins with this text.
  const text = code === 'CONTEXT_TOO_LONG' ? `prompt is too long: ${message}` : message;
  return { type, message: text, code, param: field ?? null, retryable };
}

function toBlock(part: MessagePart): object {
  if (part.kind === 'call') return { type: 'tool_use', id: part.id, name: part.name, input: parseInput(part.text) };
  if (part.kind === 'text') return { type: 'text', text: part.text };
  return { type: 'thinking', thinking: part.text, signature: '' };
}

function toDelta({ kind, text }: MessagePart): object {
  if (kind === 'text') return { type: 'text_delta', text };
  return kind === 'reasoning'
    ? { type: 'thinking_delta', thinking: text }
    : { type: 'input_json_delta', partial_json: text };
}

/** Input of a tool call, which must be an object. A response that ended within the arguments has no valid JSON. */
function parseInput(text: string): object {
  try {
    const input: unknown = JSON.parse(text);
    return typeof input === 'object' && input !== null ? input : {};
  } catch {
    return {};
  }
}

function toStopFields(generation: Generation): object {
  const reason = getFinishReason(generation);
  const stop = getMatchedStop(generation);
  if (reason === 'stop' && typeof stop === 'string') return { stop_reason: 'stop_sequence', stop_sequence: stop };
  return { stop_reason: reason && (STOP_REASONS[reason] ?? reason), stop_sequence: null };
}

function toUsage({ report, tokens }: Generation): object {
  const { promptTokens, promptTokenIds, cachedTokens = 0 } = report;
  const input = promptTokens ?? promptTokenIds?.length ?? 0;
  return {
    input_tokens: input - cachedTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: 0,
    output_tokens: tokens.count,
  };
}
