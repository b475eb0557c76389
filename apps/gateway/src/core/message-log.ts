import type { TokenIncrement } from '@broomwagon/engines';

/** Position of a reader in a message. */
export interface MessagePosition {
  changes: number;
  /** Characters of each text that the reader has. */
  texts: Record<string, number>;
  /** Characters of the arguments of each tool call that the reader has. */
  calls: number[];
}

/** A tool call as engines write it in the deltas of a chat. */
interface ToolCall {
  index: number;
  id?: string;
  type?: string;
  function: { name?: string; arguments: string };
}

type ToolCallDelta = Partial<Omit<ToolCall, 'function'>> & { function?: Partial<ToolCall['function']> };

/** A message as it is saved for another replica. */
export interface SavedMessage {
  texts: Record<string, string>;
  calls: ToolCall[];
  others: [string, unknown][];
  logprobs: object[];
  isContentLast: boolean;
  finishReason?: string;
}

/**
 * The message of a chat over all calls of engines, as the engines have parsed it. The text of a call that was continued
 * with token ids is not parsed: it is added to the content, or the whole message is parsed at its end.
 */
export class MessageLog {
  /** Content, reasoning and further texts, by the field names of the engine. */
  private texts: Record<string, string> = {};
  private readonly calls: ToolCall[] = [];
  /** The newest tool call of each index of the engine. */
  private readonly callsByIndex = new Map<number, ToolCall>();
  private tokenCount = 0;
  /** Other fields of deltas, with the number of the change that has set them. */
  private readonly others = new Map<string, { value: unknown; change: number }>();
  /** An entry for each token, if the client has asked for log probabilities. */
  readonly logprobs: object[] = [];
  private changes = 0;
  /** Name of the latest text; undefined after a tool call. */
  private lastText: string | undefined;
  /** Characters at the end of the latest text that readers do not get yet: a stop text may begin with them. */
  private heldLength = 0;
  /** The parts stay as they are until {@link settle} gives the whole message. */
  isParsedAtEnd = false;
  finishReason: string | undefined;

  /**
   * @param topLogprobs number of alternatives of each token that the client has asked for; undefined: no log
   * probabilities
   */
  constructor(private readonly topLogprobs: number | undefined) {}

  take(increment: TokenIncrement): void {
    const { choice, text } = increment;
    if (!this.isParsedAtEnd) {
      this.changes += 1;
      if (choice?.delta) this.merge(choice.delta);
      else if (text !== '') this.add('content', text);
    }
    // An engine may report the end of a choice twice.
    if (this.finishReason !== 'tool_calls') this.finishReason = choice?.finish_reason ?? this.finishReason;
    if (this.topLogprobs !== undefined) this.addLogprobs(increment, this.toLogprobEntries(increment));
    this.tokenCount += increment.tokenCount;
  }

  clear(): void {
    this.clearParts();
    this.logprobs.length = 0;
    this.tokenCount = 0;
    this.lastText = undefined;
    this.isParsedAtEnd = false;
    this.finishReason = undefined;
  }

  /**
   * Replaces the parts by the whole message, as an engine has parsed it.
   * @param isSent a client has read the parts so far
   * @returns false, with nothing changed, if the message does not begin with the parts that were sent
   */
  settle(parsed: Record<string, unknown>, isSent: boolean): boolean {
    const { tool_calls: list, ...fields } = parsed;
    const calls = (list ?? []) as ToolCall[];
    const sentTexts = isSent ? this.texts : {};
    const sentCalls = isSent ? [...this.calls] : [];
    const isKept =
      Object.entries(sentTexts).every(([name, text]) => {
        const whole = Object.hasOwn(fields, name) ? fields[name] : undefined;
        return String(whole ?? '').startsWith(text);
      }) &&
      sentCalls.every(({ index, function: { name, arguments: text } }) => {
        const called = calls[index]?.function;
        return called?.name === name && called?.arguments.startsWith(text);
      });
    if (!isKept) return false;
    this.clearParts();
    this.isParsedAtEnd = false;
    this.changes += 1;
    const ids = new Map(sentCalls.map(({ index, id }) => [index, id]));
    this.merge({
      ...fields,
      tool_calls: calls.map((call, index) => ({ ...call, index, id: ids.get(index) ?? call.id })),
    });
    this.finishReason = calls.length > 0 ? 'tool_calls' : 'stop';
    return true;
  }

  get saved(): SavedMessage {
    const { texts, calls, logprobs, isInContent: isContentLast, finishReason } = this;
    return {
      texts,
      calls,
      others: [...this.others].map(([name, { value }]) => [name, value]),
      logprobs,
      isContentLast,
      finishReason,
    };
  }

  /** @param isReadable readers get the parts; otherwise the message may begin again */
  restore({ texts, calls, others, logprobs, isContentLast, finishReason }: SavedMessage, isReadable: boolean): void {
    this.clear();
    this.texts = texts;
    this.calls.push(...calls);
    for (const entry of logprobs) this.logprobs.push(entry);
    this.tokenCount = logprobs.length;
    this.lastText = isContentLast ? 'content' : undefined;
    this.finishReason = finishReason;
    this.changes = isReadable ? 1 : 0;
    for (const [name, value] of others) this.others.set(name, { value, change: 1 });
  }

  /** Removes the end of the latest text, which belongs to a stop text. */
  removeEnd(end: string): void {
    const name = this.lastText ?? 'content';
    const text = this.texts[name];
    // The engine may have removed the stop text, for example as the end of the reasoning.
    if (text?.endsWith(end)) this.texts[name] = text.slice(0, -end.length);
  }

  /** Keeps the end of the latest text from readers, until it is certain that no stop text begins in this end. */
  holdEnd(characters: number): void {
    this.heldLength = characters;
  }

  /** Whether further tokens are content too: the latest part that the engine has begun is content. */
  get isInContent(): boolean {
    return this.lastText === 'content';
  }

  get position(): MessagePosition {
    const texts = Object.fromEntries(this.readableTexts.map(([name, text]) => [name, text.length]));
    return { changes: this.changes, texts, calls: this.calls.map((call) => call.function.arguments.length) };
  }

  /** Delta of the message after a position. */
  after(from?: MessagePosition): Record<string, unknown> & { tool_calls?: ToolCallDelta[] } {
    const delta: Record<string, unknown> = {};
    for (const [name, text] of this.readableTexts) {
      const sent = from !== undefined && Object.hasOwn(from.texts, name) ? from.texts[name]! : 0;
      if (text.length > sent) delta[name] = text.slice(sent);
    }
    const calls = this.calls.flatMap((call): ToolCallDelta[] => {
      const sent = from?.calls[call.index];
      if (sent === undefined) return [{ ...call, function: { ...call.function } }];
      const rest = call.function.arguments.slice(sent);
      return rest === '' ? [] : [{ index: call.index, function: { arguments: rest } }];
    });
    for (const [name, { value, change }] of this.others) if (change > (from?.changes ?? 0)) delta[name] = value;
    return { ...delta, ...(calls.length > 0 && { tool_calls: calls }) };
  }

  whole(): Record<string, unknown> {
    const { tool_calls: calls, content, ...others } = this.after();
    return {
      role: 'assistant',
      content: content ?? (calls === undefined ? '' : null),
      ...others,
      ...(calls && { tool_calls: calls.map(({ index: _index, ...call }) => call) }),
    };
  }

  private get readableTexts(): [string, string][] {
    return Object.entries(this.texts).map(([name, text]) => {
      const isHeld = this.heldLength > 0 && name === this.lastText;
      return [name, isHeld ? text.slice(0, -this.heldLength) : text];
    });
  }

  private clearParts(): void {
    this.texts = {};
    this.calls.length = 0;
    this.callsByIndex.clear();
    this.others.clear();
  }

  private merge({ role: _role, tool_calls: calls, ...fields }: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value === 'string') this.add(name, value);
      else if (value !== null) this.others.set(name, { value, change: this.changes });
    }
    if (!Array.isArray(calls)) return;
    for (const delta of calls as ToolCallDelta[]) this.addCall(delta);
  }

  private add(name: string, text: string): void {
    if (text === '') return;
    this.texts[name] = (Object.hasOwn(this.texts, name) ? this.texts[name] : '') + text;
    this.lastText = name;
  }

  private addCall(delta: ToolCallDelta): void {
    const { function: called, index: engineIndex, ...fields } = delta;
    this.lastText = undefined;
    let call = this.findCall(delta);
    if (call === undefined) {
      call = { ...fields, index: this.calls.length, function: { ...called, arguments: called?.arguments ?? '' } };
      this.calls.push(call);
    } else {
      call.id ??= fields.id;
      call.function.name ??= called?.name;
      call.function.arguments += called?.arguments ?? '';
    }
    if (engineIndex !== undefined) this.callsByIndex.set(engineIndex, call);
  }

  /**
   * The tool call that a delta continues. Engines may leave out ids or indexes, or repeat an index: another id is
   * another call, and a delta without id and index continues the newest call unless it has a function name again.
   */
  private findCall({ id, index, function: called }: ToolCallDelta): ToolCall | undefined {
    const newest = this.calls.at(-1);
    const byIndex = index === undefined ? undefined : this.callsByIndex.get(index);
    if (typeof id === 'string' && id !== '') {
      const byId = this.calls.find((call) => call.id === id);
      const unnamed = index === undefined ? newest : byIndex;
      return byId ?? (unnamed?.id === undefined ? unnamed : undefined);
    }
    if (index !== undefined) return byIndex ?? this.unindexed(index);
    return called?.name !== undefined && newest?.function.name !== undefined ? undefined : newest;
  }

  /** The tool call at a position, if its first delta had no index. */
  private unindexed(index: number): ToolCall | undefined {
    const call = this.calls[index];
    return call !== undefined && ![...this.callsByIndex.values()].includes(call) ? call : undefined;
  }

  /**
   * Adds log probabilities. A token without a log probability from the engine gets null, so that each entry stays at
   * its token.
   */
  private addLogprobs({ tokenIds, tokenCount }: TokenIncrement, entries: object[]): void {
    if (entries.length === 0 && this.logprobs.length === 0) return;
    while (this.logprobs.length < this.tokenCount) this.logprobs.push(emptyEntry());
    const isWhole = entries.length === tokenCount;
    for (let index = 0; index < tokenCount; index++) {
      this.logprobs.push(isWhole ? entries[index]! : emptyEntry(tokenIds?.[index]));
    }
  }

  /**
   * Log probabilities of an increment. Entries of a call on another route than the chat are converted to the form of a
   * chat.
   */
  private toLogprobEntries({ choice, logprobs, tokenIds }: TokenIncrement): object[] {
    const { content, tokens, top_logprobs: tops } = choice?.logprobs ?? {};
    if (content) return content;
    return (logprobs ?? []).map((logprob, index) => ({
      ...toLogprobEntry(tokens?.[index] ?? `token_id:${tokenIds?.[index]}`, logprob),
      top_logprobs: Object.entries(tops?.[index] ?? {})
        .slice(0, this.topLogprobs)
        .map(([token, one]) => toLogprobEntry(token, one)),
    }));
  }
}

function emptyEntry(tokenId?: number): object {
  return { ...toLogprobEntry(tokenId === undefined ? '' : `token_id:${tokenId}`, null), top_logprobs: [] };
}

function toLogprobEntry(token: string, logprob: number | null): object {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
