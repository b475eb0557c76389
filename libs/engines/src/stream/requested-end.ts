import type { EngineStream } from '../http/engine-stream';
import type { EngineMemory } from './pace-meter';

/** Default of {@link StoppedCall.timeoutMs}. */
const TIMEOUT_MS = 3_000;

/** The call that is stopped. */
export interface StoppedCall {
  stream: Pick<EngineStream, 'isSent' | 'isAnswered' | 'isOpen' | 'abort' | 'onceOpen'>;
  /** Stops the request by its id. False if the engine has no such route, undefined if the call failed. */
  abortById: () => Promise<boolean | undefined>;
  memory: EngineMemory;
  /** Number of tokens so far. */
  countTokens: () => number;
  reason: () => unknown;
  /** Time for the headers of the call, and then for the rest of its stream, milliseconds. */
  timeoutMs?: number;
}

/**
 * Ends the request of a stopped call by its id, and lets the stream run to its end: the last event has the tokens that
 * the engine had not sent. A closed connection would lose these tokens. The connection is closed where the engine has
 * no abort by id, or does not end the stream in time.
 */
export class RequestedEnd {
  /** The engine has answered an abort of a request that it knew. */
  isConfirmed = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly call: StoppedCall) {}

  begin(): void {
    const { stream, memory } = this.call;
    if (!stream.isSent || (stream.isAnswered && !stream.isOpen) || memory.ignoresAborts === true)
      return this.disconnect();
    // Before its headers the engine may not know the id, so the abort is repeated after them (decision 0026).
    if (!stream.isAnswered) stream.onceOpen(this.call.reason(), () => this.abort());
    this.abort();
  }

  clear(): void {
    clearTimeout(this.timer);
  }

  private abort(): void {
    const { stream, countTokens, timeoutMs = TIMEOUT_MS } = this.call;
    const { isOpen } = stream;
    let abortedAt: number | undefined;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (abortedAt !== undefined && countTokens() > abortedAt) this.call.memory.ignoresAborts = true;
      this.disconnect();
    }, timeoutMs);
    void this.call.abortById().then((isAnswered) => {
      if (!isAnswered) return this.disconnect();
      this.isConfirmed ||= isOpen;
      abortedAt = countTokens();
    });
  }

  private disconnect(): void {
    this.call.stream.abort(this.call.reason());
  }
}
