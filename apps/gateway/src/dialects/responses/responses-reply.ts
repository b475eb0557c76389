import type { BroomwagonError } from '@broomwagon/contracts';
import { getFinishReason } from '../chat/chat-reply';
import { type MessagePart, toMessageParts } from '../chat/message-parts';
import type { Generation } from '../../core/generation';
import { BEGIN, type Format, type Position } from '../../answers/format';
import { errorBody } from '../../http/send-json';
import { toModelName } from '../vllm/choice-fields';

/** Names of the events of the text of an item, without `.delta` and `.done`. */
const TEXT_EVENTS = {
  text: 'response.output_text',
  reasoning: 'response.reasoning_text',
  call: 'response.function_call_arguments',
};
const ITEM_IDS = { text: 'msg', reasoning: 'rs', call: 'fc' };

/** Answers of `/v1/responses`; each request needs its own instance, which counts the items and events of a stream. */
export class ResponsesFormat implements Format {
  readonly hasNamedEvents = true;
  private readonly createdAt = Math.floor(Date.now() / 1_000);
  private events = 0;
  /** Number of the last item of the stream. */
  private index = -1;
  /** The last item with all its text, while it is open. */
  private open: (MessagePart & { key: string }) | undefined;

  /** @param request request whose fields the response repeats */
  constructor(
    private readonly id: string,
    private readonly request: Record<string, unknown>,
  ) {}

  whole([generation]: Generation[]): object {
    return this.response(generation!);
  }

  chunk(generation: Generation, from: Position): object[] {
    const events: object[] = [];
    if (from === BEGIN) {
      const response = { ...this.response(generation), status: 'in_progress', output: [] };
      events.push({ type: 'response.created', response }, { type: 'response.in_progress', response });
    }
    for (const part of toMessageParts(generation.tokens.message!.after(from.message))) {
      const key = part.kind === 'call' ? `call-${part.index}` : part.kind;
      if (key !== this.open?.key) events.push(...this.close(), ...this.begin(key, part));
      this.open!.text += part.text;
      events.push({ type: `${TEXT_EVENTS[part.kind]}.delta`, ...this.place(part), delta: part.text });
    }
    if (generation.end !== undefined) {
      const { status } = toStatus(generation);
      const type = status === 'completed' ? 'response.completed' : 'response.incomplete';
      events.push(...this.close(), { type, response: this.response(generation) });
    }
    return events.map((event) => this.numbered(event));
  }

  /** Builds an error event. The client of OpenAI throws the value of the field `error`. */
  failure(error: BroomwagonError): object {
    const { code, message, field: param = null } = error;
    return this.numbered({ type: 'error', code, message, param, error: errorBody(error) });
  }

  private numbered(event: object): object {
    return { ...event, sequence_number: this.events++ };
  }

  private begin(key: string, part: MessagePart): object[] {
    this.index += 1;
    this.open = { ...part, key, text: '' };
    const item = this.toItem(this.open, this.index, 'in_progress') as { content?: object[] };
    const added = { type: 'response.output_item.added', output_index: this.index };
    if (part.kind === 'call') return [{ ...added, item }];
    const content = { type: 'response.content_part.added', ...this.place(part), part: toContentPart(this.open) };
    return [{ ...added, item: { ...item, content: [] } }, content];
  }

  private close(): object[] {
    const { open } = this;
    if (open === undefined) return [];
    this.open = undefined;
    const place = this.place(open);
    const text = open.kind === 'call' ? { arguments: open.text, name: open.name } : { text: open.text };
    const item = this.toItem(open, this.index, 'completed');
    return [
      { type: `${TEXT_EVENTS[open.kind]}.done`, ...place, ...text },
      ...(open.kind === 'call' ? [] : [{ type: 'response.content_part.done', ...place, part: toContentPart(open) }]),
      { type: 'response.output_item.done', output_index: this.index, item },
    ];
  }

  private place({ kind }: MessagePart): object {
    const content = kind === 'call' ? {} : { content_index: 0 };
    return { item_id: this.itemId(kind, this.index), output_index: this.index, ...content };
  }

  private itemId(kind: MessagePart['kind'], index: number): string {
    return `${ITEM_IDS[kind]}_${this.id}_${index}`;
  }

  private toItem(part: MessagePart, index: number, status: string): object {
    const id = this.itemId(part.kind, index);
    if (part.kind === 'call') {
      return { id, type: 'function_call', status, call_id: part.id, name: part.name, arguments: part.text };
    }
    const content = [toContentPart(part)];
    if (part.kind === 'reasoning') return { id, type: 'reasoning', status, summary: [], content };
    return { id, type: 'message', role: 'assistant', status, content };
  }

  private response(generation: Generation): object {
    const { request } = this;
    const { status, reason } = toStatus(generation);
    const items = toMessageParts(generation.tokens.message!.after());
    return {
      id: `resp_${this.id}`,
      object: 'response',
      created_at: this.createdAt,
      status,
      error: null,
      incomplete_details: reason === undefined ? null : { reason },
      model: toModelName(request.model as string | undefined, generation),
      instructions: request.instructions ?? null,
      max_output_tokens: request.max_output_tokens ?? null,
      output: items.map((part, index) => this.toItem(part, index, status)),
      parallel_tool_calls: request.parallel_tool_calls ?? true,
      previous_response_id: null,
      store: false,
      metadata: request.metadata ?? {},
      temperature: request.temperature ?? null,
      top_p: request.top_p ?? null,
      tools: request.tools ?? [],
      tool_choice: request.tool_choice ?? 'auto',
      text: request.text ?? { format: { type: 'text' } },
      usage: generation.end === undefined ? null : toUsage(generation),
    };
  }
}

function toContentPart({ kind, text }: MessagePart): object {
  if (kind === 'reasoning') return { type: 'reasoning_text', text };
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function toStatus(generation: Generation): { status: string; reason?: string } {
  const reason = getFinishReason(generation);
  if (reason === null) return { status: 'in_progress' };
  if (reason === 'length') return { status: 'incomplete', reason: 'max_output_tokens' };
  return reason === 'abort' ? { status: 'cancelled', reason } : { status: 'completed' };
}

function toUsage({ report, tokens }: Generation): object {
  const { promptTokens, promptTokenIds, cachedTokens = 0 } = report;
  const input = promptTokens ?? promptTokenIds?.length ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: tokens.count,
    // Engines do not count the tokens of their reasoning separately.
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + tokens.count,
  };
}
