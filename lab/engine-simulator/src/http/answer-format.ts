import type { FinishReason } from '../engine/simulated-engine.types';
import type { TokenScript } from '../tokens/token-script';
import type { GenerateCall } from './generate-call';
import { inputTokenLogprobs, promptLogprobs, type ScoredTokens } from './prompt-logprobs';

/** A span of a response: positions count from its start, earlier attempts included. */
export interface Span {
  from: number;
  to: number;
}

export interface AnswerContext {
  call: GenerateCall;
  script: TokenScript;
  model: string;
  createdAtSeconds: number;
  /** Token ids of the prompt, for a chat that asks for token ids. */
  promptTokenIds?: number[];
  /** Tokens of the prompt with their log probabilities, for a call that asks for them. */
  scored?: ScoredTokens;
  /** Number of tokens of the whole prompt, generated ones included. */
  promptTokens: number;
  /** Position at which this attempt starts. */
  start: number;
  /** SGLang: whether chunks repeat all tokens of this attempt. */
  cumulative: boolean;
  /** Number of tokens at the start of a message that are its reasoning. */
  reasoningTokens: number;
  /** Writes the routed experts at the end of an answer, as JSON. */
  experts?: (made: number) => string;
}

/**
 * Writes chunks and whole answers in the formats of the three kinds of routes. Answers are put together as text,
 * because generated tokens have no characters that JSON escapes, and the simulator spends most of its time here.
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

  /** One chunk with the tokens of a span; the last chunk has the finish reason. */
  chunk(span: Span, reason: FinishReason | undefined): string {
    const { call, cumulative, start } = this.context;
    if (call.form === 'sglang') return this.sglang(cumulative ? { from: start, to: span.to } : span, span.to, reason);
    const usage = call.continuousUsage ? `,"usage":${this.usage(span.to)}` : '';
    const ids = span.from === start ? this.promptIds() : '';
    return `{${this.head},"choices":[${this.choice(span, reason, 'delta')}]${usage}${ids}}`;
  }

  /** Last chunk of SGLang, by which the engine reports its own failure or refusal. */
  failure(made: number, status: number): string {
    const meta = { id: this.context.call.id, completion_tokens: made - this.context.start };
    const reason = { type: 'abort', message: 'simulated abort with a status', status_code: status, err_type: null };
    return JSON.stringify({ text: '', output_ids: [], meta_info: { ...meta, finish_reason: reason } });
  }

  /** Chunk with the usage alone, if the client has asked for it. */
  usageChunk(made: number): string | undefined {
    const { call } = this.context;
    if (!call.usage || call.form === 'sglang') return undefined;
    return `{${this.head},"choices":[],"usage":${this.usage(made)}}`;
  }

  /** Answer to a request that is not streamed. */
  whole(to: number, reason: FinishReason): string {
    const span = { from: this.context.start, to };
    if (this.context.call.form === 'sglang') return this.sglang(span, to, reason);
    const choice = `${this.choice(span, reason, 'message').slice(0, -1)}${promptLogprobs(this.context.scored)}}`;
    return `{${this.head},"choices":[${choice}],"usage":${this.usage(to)}${this.promptIds()}}`;
  }

  private promptIds(): string {
    const { promptTokenIds } = this.context;
    return promptTokenIds === undefined ? '' : `,"prompt_token_ids":[${promptTokenIds.join(',')}]`;
  }

  private choice({ from, to }: Span, reason: FinishReason | undefined, part: 'delta' | 'message'): string {
    const { call, script } = this.context;
    const words = `"${script.text(from, to)}"`;
    const text = call.form === 'chat' ? `"${part}":${this.message({ from, to }, reason)}` : `"text":${words}`;
    const ids = call.tokenIds ? `,"token_ids":[${script.idList(from, to)}]` : '';
    const finish = reason === undefined ? 'null' : `"${call.tool && reason === 'stop' ? 'tool_calls' : reason}"`;
    if (call.form === 'tokens') {
      const content = script.logprobs(from, to).map((logprob) => ({ logprob }));
      const logprobs = call.logprobs ? JSON.stringify({ content }) : 'null';
      return `{"index":0,"logprobs":${logprobs},"finish_reason":${finish}${ids}${this.experts(to, reason)}}`;
    }
    return `{"index":0,${text},"logprobs":${this.logprobs(from, to)},"finish_reason":${finish},"stop_reason":null${ids}}`;
  }

  private message({ from, to }: Span, reason: FinishReason | undefined): string {
    const { call, script, start, reasoningTokens } = this.context;
    if (call.tool === undefined) {
      const border = Math.max(from, Math.min(reasoningTokens, to));
      const reasoning = border > from ? `,"reasoning":"${script.text(from, border)}"` : '';
      return `{"role":"assistant"${reasoning},"content":"${script.text(border, to)}"}`;
    }
    const words = script.text(from, to);
    const isFirst = from === start;
    const called = {
      ...(isFirst && { name: call.tool }),
      arguments: `${isFirst ? '{"text":"' : ''}${words}${reason === 'stop' ? '"}' : ''}`,
    };
    const toolCall = { index: 0, ...(isFirst && { id: `call-${call.id}`, type: 'function' }), function: called };
    return JSON.stringify({ role: 'assistant', content: null, tool_calls: [toolCall] });
  }

  private logprobs(from: number, to: number): string {
    const { call, script } = this.context;
    if (!call.logprobs) return 'null';
    const values = script.logprobs(from, to);
    // Words cost the most time, and clients of completions without alternatives have them in the text.
    if (call.form === 'completion' && call.topLogprobs === 0) return JSON.stringify({ token_logprobs: values });
    const words = values.map((_, index) => script.text(from + index, from + index + 1));
    // The chosen token comes first, then less likely tokens.
    const tops = values.map((value, index) =>
      Array.from({ length: call.topLogprobs }, (_, rank) => ({
        token: rank === 0 ? words[index]! : ` other${rank}`,
        logprob: value - rank,
      })),
    );
    if (call.form === 'completion') {
      const topLogprobs = tops.map((top) => Object.fromEntries(top.map(({ token, logprob }) => [token, logprob])));
      return JSON.stringify({ tokens: words, token_logprobs: values, top_logprobs: topLogprobs });
    }
    const withBytes = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
    const entries = values.map((value, index) => ({
      ...withBytes(words[index]!, value),
      top_logprobs: tops[index]!.map(({ token, logprob }) => withBytes(token, logprob)),
    }));
    return JSON.stringify({ content: entries });
  }

  private usage(to: number): string {
    const { promptTokens, start } = this.context;
    const made = to - start;
    return `{"prompt_tokens":${promptTokens},"completion_tokens":${made},"total_tokens":${promptTokens + made}}`;
  }

  private experts(to: number, reason: FinishReason | undefined): string {
    const { experts } = this.context;
    return experts === undefined ? '' : `,"routed_experts":${reason === undefined ? 'null' : experts(to)}`;
  }

  private sglang({ from, to }: Span, end: number, reason: FinishReason | undefined): string {
    const { call, script, promptTokens, start, scored } = this.context;
    const finish =
      reason === undefined
        ? 'null'
        : JSON.stringify(reason === 'length' ? { type: reason, length: end } : { type: reason });
    const logprobs = call.logprobs
      ? `,"output_token_logprobs":${JSON.stringify(
          script
            .logprobs(from, to)
            .map((value, at) => [value, 0, call.hasTokenTexts ? script.text(from + at, from + at + 1) : null]),
        )}`
      : '';
    const meta =
      `"id":${JSON.stringify(call.id)},"finish_reason":${finish},"prompt_tokens":${promptTokens},` +
      `"completion_tokens":${end - start},"cached_tokens":0${inputTokenLogprobs(scored)}${logprobs}${this.experts(end, reason)}`;
    return `{"text":"${script.text(from, to)}","output_ids":[${script.idList(from, to)}],"meta_info":{${meta}}}`;
  }
}
