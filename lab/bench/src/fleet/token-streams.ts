import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { PreparedAnswers } from './prepared-answers';

/** Interval at which due events are sent, milliseconds. */
const TICK_MS = 5;
/** Slots of the wheel: the longest time between two events of a stream is 40 s. */
const SLOTS = 8_192;

export interface StreamRequest {
  /** Id by which the request is aborted. */
  id: string;
  maxTokens: number;
  /** Tokens of one event, after the first token. */
  interval: number;
  hasLogprobs: boolean;
  tokensPerSecond: number;
}

interface Stream extends StreamRequest {
  response: ServerResponse;
  /** Chunks are written to the socket, past the HTTP server, which would copy each of them. */
  socket: Socket;
  sent: number;
  startedAtMs: number;
  dueMs: number;
}

/** Streams of an engine: the first token is sent at once, then an event for each `interval` tokens. */
export class TokenStreams {
  private readonly wheel: Stream[][] = Array.from({ length: SLOTS }, () => []);
  private readonly byId = new Map<string, Stream>();
  private tick = 0;
  tokens = 0;
  events = 0;

  constructor(private readonly answers: PreparedAnswers) {
    setInterval(() => this.sendDue(), TICK_MS);
  }

  get open(): number {
    return this.byId.size;
  }

  start(request: StreamRequest, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.flushHeaders();
    const now = performance.now();
    const stream: Stream = { ...request, response, socket: response.socket!, sent: 0, startedAtMs: now, dueMs: now };
    this.byId.set(stream.id, stream);
    response.once('close', () => this.byId.delete(stream.id));
    if (stream.tokensPerSecond === 0) this.send(stream, stream.maxTokens, true);
    else this.send(stream, 1, stream.maxTokens === 1);
  }

  /** Ends a stream with the tokens that are generated and not sent yet. */
  abort(id: string): void {
    const stream = this.byId.get(id);
    if (stream === undefined) return;
    const made = Math.floor(((performance.now() - stream.startedAtMs) * stream.tokensPerSecond) / 1_000) + 1;
    this.send(stream, Math.max(stream.sent, Math.min(made, stream.maxTokens)), true, 'abort');
  }

  private sendDue(): void {
    const nowTick = Math.floor(performance.now() / TICK_MS);
    if (this.tick === 0) this.tick = nowTick;
    for (; this.tick < nowTick; this.tick++) {
      const due = this.wheel[this.tick % SLOTS]!;
      if (due.length === 0) continue;
      this.wheel[this.tick % SLOTS] = [];
      for (const stream of due) {
        if (this.byId.get(stream.id) !== stream) continue;
        const to = Math.min(stream.maxTokens, stream.sent + stream.interval);
        this.send(stream, to, to === stream.maxTokens);
      }
    }
  }

  private send(stream: Stream, to: number, isLast: boolean, end: 'length' | 'abort' = 'length'): void {
    const { socket, response, sent, interval, maxTokens, tokensPerSecond, hasLogprobs } = stream;
    this.tokens += to - sent;
    this.events += 1;
    stream.sent = to;
    if (socket.writable) socket.write(this.answers.event(sent, to, hasLogprobs, isLast ? end : undefined));
    if (isLast) {
      this.byId.delete(stream.id);
      response.end();
      return;
    }
    // Times follow from the start, so that a late event does not slow the stream down.
    stream.dueMs = stream.startedAtMs + (1_000 * (Math.min(maxTokens, to + interval) - 1)) / tokensPerSecond;
    const slot = Math.max(this.tick + 1, Math.floor(stream.dueMs / TICK_MS));
    this.wheel[slot % SLOTS]!.push(stream);
  }
}
