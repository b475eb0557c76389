import type { ServerResponse } from 'node:http';
import type { Fault } from '../engine/faults';
import type { FinishReason, TokenSink } from '../engine/simulated-engine.types';
import { errorBody, sendBody } from './answers';
import type { AnswerFormat, Span } from './answer-format';

const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };
const LONG_LINE_BYTES = 2 * 1_048_576;

/** Refuses a stream as SGLang does: with status 200, and without a code. */
export function sendStreamError(response: ServerResponse, message: string): void {
  response.writeHead(200, EVENT_STREAM).end(`data: ${JSON.stringify({ error: { message } })}\n\ndata: [DONE]\n\n`);
}

/** Writes a response as server-sent events. The last tokens and the finish reason are in one chunk. */
export class StreamSink implements TokenSink {
  private held?: Span;
  private sentTokens = 0;
  private silent = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly format: AnswerFormat,
    private readonly start: number,
    private readonly fault: Fault | undefined,
  ) {
    response.writeHead(200, EVENT_STREAM);
    response.flushHeaders();
  }

  tokens(from: number, to: number): void {
    if (this.silent) return;
    this.flush();
    if (this.fault && this.sentTokens + to - from >= this.fault.afterTokens) {
      const upTo = Math.min(to, from + Math.max(0, this.fault.afterTokens - this.sentTokens));
      this.write(this.format.chunk({ from, to: upTo }, undefined));
      this.sentTokens += upTo - from;
      this.strike(this.fault);
      return;
    }
    this.held = { from, to };
    // Held for the rest of this turn only, so that an end that comes with these tokens is in the same chunk.
    queueMicrotask(() => this.flush());
    this.sentTokens += to - from;
  }

  end(reason: FinishReason): void {
    // The server of an engine that hangs still ends a request that is aborted.
    if (this.silent && !(reason === 'abort' && this.fault?.kind === 'stall')) return;
    const made = this.start + this.sentTokens;
    const last = this.held ?? { from: made, to: made };
    this.held = undefined;
    this.write(this.format.chunk(last, reason));
    const usage = this.format.usageChunk(made);
    if (usage !== undefined) this.write(usage);
    this.response.end('data: [DONE]\n\n');
  }

  private flush(): void {
    if (!this.held) return;
    const span = this.held;
    this.held = undefined;
    this.write(this.format.chunk(span, undefined));
  }

  private write(json: string): void {
    if (!this.response.destroyed && !this.response.writableEnded) this.response.write(`data: ${json}\n\n`);
  }

  private strike(fault: Fault): void {
    this.silent = true;
    if (fault.kind === 'stall' || fault.kind === 'stall-unnoticed') return;
    if (fault.kind === 'error-in-stream') {
      this.write(JSON.stringify(errorBody(500, 'simulated failure of the engine')));
      this.response.end('data: [DONE]\n\n');
    } else if (fault.kind === 'end-mid-stream') {
      this.response.end();
    } else if (fault.kind === 'done-mid-stream') {
      this.response.end('data: [DONE]\n\n');
    } else if (fault.kind === 'abort-with-503' || fault.kind === 'abort-with-400') {
      const made = this.start + this.sentTokens;
      this.write(this.format.failure(made, Number(fault.kind.slice(-3))));
      this.response.end('data: [DONE]\n\n');
    } else if (fault.kind === 'long-line') {
      this.response.end(`data: ${'x'.repeat(LONG_LINE_BYTES)}\n\n`);
    } else {
      // Earlier writes are sent first, so that the client has the tokens before the connection breaks.
      this.response.write('data: {"id":', () => this.response.destroy());
    }
  }
}

/** Sends one answer at the end of the response. */
export class WholeSink implements TokenSink {
  private made: number;

  constructor(
    private readonly response: ServerResponse,
    private readonly format: AnswerFormat,
    start: number,
  ) {
    this.made = start;
  }

  tokens(_from: number, to: number): void {
    this.made = to;
  }

  end(reason: FinishReason): void {
    sendBody(this.response, 200, 'application/json', this.format.whole(this.made, reason));
  }
}
