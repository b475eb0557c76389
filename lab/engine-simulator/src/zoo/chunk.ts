import type { GenerateCall } from '../http/generate-call';

export interface ToolCallDelta {
  index?: number | null;
  id?: string;
  type?: string;
  function: { name?: string; arguments?: string };
}

interface OpenAiChoice {
  text?: string;
  delta?: { content?: string | null; tool_calls?: ToolCallDelta[] };
  token_ids?: number[];
  logprobs?: { token_logprobs?: Logprob[]; content?: { logprob: Logprob }[] } | null;
  finish_reason: string | null;
  stop_reason?: string | number | null;
}

interface SglangMeta {
  completion_tokens: number;
  finish_reason: SglangReason | null;
  output_token_logprobs?: [Logprob, number, string | null][];
  [field: string]: unknown;
}

export interface SglangReason {
  type: string;
  matched?: string;
  length?: number;
  message?: string;
}

/** Placeholder that is written as `-Infinity`, which Python reads and writes, but which is not JSON. */
export const MINUS_INFINITY = 'minus-infinity';
export type Logprob = number | null | typeof MINUS_INFINITY;

/** One chunk of a stream of any dialect, with new tokens only, whatever form the engine sends. */
export class Chunk {
  /** Length of the whole text, if the chunk takes back text that was sent, characters. */
  wholeLength: number | undefined;
  /** Whether the chunk is SGLang's end of a request that was aborted while it waited. */
  isWaitingAbort = false;
  /** Whether the chunk has all tokens so far again. */
  hasAllTokens = false;

  private constructor(
    readonly body: Record<string, unknown>,
    private readonly isSglang: boolean,
    /** Number of tokens of the chunk. */
    public tokenCount: number,
  ) {}

  static parse(json: string, { form }: Pick<GenerateCall, 'form'>, tokenCount: number): Chunk {
    return new Chunk(JSON.parse(json) as Record<string, unknown>, form === 'sglang', tokenCount);
  }

  /** Copy of the chunk without its tokens. */
  empty(): Chunk {
    const copy = this.copy();
    copy.tokenCount = 0;
    copy.text = '';
    copy.removeTokens();
    copy.toolCalls = undefined;
    return copy;
  }

  copy(): Chunk {
    return new Chunk(structuredClone(this.body), this.isSglang, this.tokenCount);
  }

  get text(): string {
    if (this.isSglang) return this.body.text as string;
    return this.choice.text ?? this.choice.delta?.content ?? '';
  }

  set text(text: string) {
    if (this.isSglang) this.body.text = text;
    else if (this.choice.text !== undefined) this.choice.text = text;
    else if (this.choice.delta && this.toolCalls === undefined) this.choice.delta.content = text;
  }

  get ids(): number[] | undefined {
    return this.isSglang ? (this.body.output_ids as number[]) : this.choice.token_ids;
  }

  get reason(): string | undefined {
    if (this.isSglang) return this.meta.finish_reason?.type;
    return this.choice.finish_reason ?? undefined;
  }

  /** @param stop stop text that ended the response; undefined: another cause */
  end(reason: string | undefined, stop?: string): void {
    if (this.isSglang) this.meta.finish_reason = reason === undefined ? null : { type: reason, matched: stop };
    else {
      this.choice.finish_reason = reason ?? null;
      if (stop !== undefined) this.choice.stop_reason = stop;
    }
  }

  get toolCalls(): ToolCallDelta[] | undefined {
    return this.isSglang ? undefined : this.choice.delta?.tool_calls;
  }

  set toolCalls(calls: ToolCallDelta[] | undefined) {
    const delta = this.isSglang ? undefined : this.choice.delta;
    if (delta) delta.tool_calls = calls;
  }

  /** Replaces each log probability, in any dialect. */
  mapLogprobs(map: (logprob: Logprob) => Logprob): void {
    if (this.isSglang) {
      for (const entry of this.meta.output_token_logprobs ?? []) entry[0] = map(entry[0]);
      return;
    }
    const { logprobs } = this.choice;
    if (logprobs?.token_logprobs) logprobs.token_logprobs = logprobs.token_logprobs.map(map);
    for (const entry of logprobs?.content ?? []) entry.logprob = map(entry.logprob);
  }

  /** SGLang: replaces ids and log probabilities. */
  replaceIds(ids: number[], logprobs: SglangMeta['output_token_logprobs']): void {
    this.body.output_ids = ids;
    if (this.meta.output_token_logprobs) this.meta.output_token_logprobs = [...(logprobs ?? [])];
  }

  /** Appends the tokens of a later chunk, and takes over its end. */
  append(later: Chunk): void {
    this.text += later.text;
    this.ids?.push(...(later.ids ?? []));
    this.tokenCount += later.tokenCount;
    this.wholeLength = later.wholeLength;
    if (this.isSglang) {
      this.meta.output_token_logprobs?.push(...(later.meta.output_token_logprobs ?? []));
      Object.assign(this.meta, { ...later.meta, output_token_logprobs: this.meta.output_token_logprobs });
      return;
    }
    const [mine, theirs] = [this.choice, later.choice];
    mine.logprobs?.token_logprobs?.push(...(theirs.logprobs?.token_logprobs ?? []));
    mine.logprobs?.content?.push(...(theirs.logprobs?.content ?? []));
    mine.finish_reason = theirs.finish_reason;
    mine.stop_reason = theirs.stop_reason;
    if (later.body.usage) this.body.usage = later.body.usage;
  }

  get meta(): SglangMeta {
    return this.body.meta_info as SglangMeta;
  }

  private removeTokens(): void {
    if (this.isSglang) {
      this.body.output_ids = [];
      if (this.meta.output_token_logprobs) this.meta.output_token_logprobs = [];
      return;
    }
    if (this.choice.token_ids) this.choice.token_ids = [];
    const { logprobs } = this.choice;
    if (logprobs?.token_logprobs) logprobs.token_logprobs = [];
    if (logprobs?.content) logprobs.content = [];
  }

  private get choice(): OpenAiChoice {
    return (this.body.choices as [OpenAiChoice])[0];
  }
}
