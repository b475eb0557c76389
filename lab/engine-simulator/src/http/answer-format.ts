import type { FinishReason } from '../engine/simulated-engine';
import type { TokenScript } from '../tokens/token-script';
import type { GenerateCall } from './generate-call';

/** A span of a response: positions from its start, earlier attempts included. */
export interface Span {
  from: number;
  to: number;
}

export interface AnswerContext {
  call: GenerateCall;
  script: TokenScript;
  model: string;
  createdAtSeconds: number;
  /** Tokens of the whole prompt, made ones included. */
  promptTokens: number;
  /** Where this attempt begins. */
  start: number;
  /** SGLang: chunks repeat everything made by this attempt. */
  cumulative: boolean;
}

/**
 * Writes chunks and whole answers in the words of the three kinds of routes. Built as text: made tokens hold nothing
 * that JSON would escape, and this is where the simulator spends most of its time.
 */
export class AnswerFormat {
  private readonly head: string;

  constructor(private readonly context: AnswerContext) {
    const { call, model, createdAtSeconds } = context;
    const id = JSON.stringify(`${call.form === 'chat' ? 'chatcmpl' : 'cmpl'}-${call.id}`);
    const object = call.form === 'chat' ? 'chat.completion' : 'text_completion';
    const suffix = call.form === 'chat' && call.stream ? '.chunk' : '';
    this.head = `"id":${id},"object":"${object}${suffix}","created":${createdAtSeconds},"model":${JSON.stringify(model)}`;
  }

  /** One chunk with the tokens of a span; the last one has the reason. */
  chunk(span: Span, reason: FinishReason | undefined): string {
    const { call, cumulative, start } = this.context;
    if (call.form === 'sglang') return this.sglang(cumulative ? { from: start, to: span.to } : span, span.to, reason);
    const usage = call.continuousUsage ? `,"usage":${this.usage(span.to)}` : '';
    return `{${this.head},"choices":[${this.choice(span, reason, 'delta')}]${usage}}`;
  }

  /** The chunk with nothing but the usage, when the client asked for it. */
  usageChunk(made: number): string | undefined {
    const { call } = this.context;
    if (!call.usage || call.form === 'sglang') return undefined;
    return `{${this.head},"choices":[],"usage":${this.usage(made)}}`;
  }

  /** The answer of a request that is not streamed. */
  whole(to: number, reason: FinishReason): string {
    const span = { from: this.context.start, to };
    if (this.context.call.form === 'sglang') return this.sglang(span, to, reason);
    return `{${this.head},"choices":[${this.choice(span, reason, 'message')}],"usage":${this.usage(to)}}`;
  }

  private choice({ from, to }: Span, reason: FinishReason | undefined, part: 'delta' | 'message'): string {
    const { call, script } = this.context;
    const words = `"${script.text(from, to)}"`;
    const text = call.form === 'chat' ? `"${part}":{"role":"assistant","content":${words}}` : `"text":${words}`;
    const ids = call.tokenIds ? `,"token_ids":[${script.idList(from, to)}]` : '';
    const finish = reason === undefined ? 'null' : `"${reason}"`;
    return `{"index":0,${text},"logprobs":${this.logprobs(from, to)},"finish_reason":${finish},"stop_reason":null${ids}}`;
  }

  private logprobs(from: number, to: number): string {
    const { call, script } = this.context;
    if (!call.logprobs) return 'null';
    const values = script.logprobs(from, to);
    if (call.form === 'completion') return JSON.stringify({ token_logprobs: values });
    return JSON.stringify({ content: values.map((logprob, index) => ({ token: `${from + index}`, logprob })) });
  }

  private usage(to: number): string {
    const { promptTokens, start } = this.context;
    const made = to - start;
    return `{"prompt_tokens":${promptTokens},"completion_tokens":${made},"total_tokens":${promptTokens + made}}`;
  }

  private sglang({ from, to }: Span, end: number, reason: FinishReason | undefined): string {
    const { call, script, promptTokens, start } = this.context;
    const finish =
      reason === undefined
        ? 'null'
        : JSON.stringify(reason === 'length' ? { type: reason, length: end } : { type: reason });
    const logprobs = call.logprobs
      ? `,"output_token_logprobs":${JSON.stringify(script.logprobs(from, to).map((value) => [value, 0, null]))}`
      : '';
    const meta =
      `"id":${JSON.stringify(call.id)},"finish_reason":${finish},"prompt_tokens":${promptTokens},` +
      `"completion_tokens":${end - start},"cached_tokens":0${logprobs}`;
    return `{"text":"${script.text(from, to)}","output_ids":[${script.idList(from, to)}],"meta_info":{${meta}}}`;
  }
}
