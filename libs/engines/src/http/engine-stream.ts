import { util, type Dispatcher } from 'undici';

/** Maximum bytes that are read of an answer that is no stream. */
const MAX_REFUSAL_BYTES = 65_536;

export type Refusal = Pick<EngineStream, 'status' | 'contentType' | 'contentEncoding' | 'retryAfter' | 'refusalText'>;

/** One call that is answered by a stream, read by callbacks: a readable stream of undici costs more for each chunk. */
export class EngineStream implements Dispatcher.DispatchHandlers {
  /** Status of the answer; 0 before the answer. */
  status = 0;
  contentType = '';
  /** Encoding of the answer: `identity` if it is not compressed. */
  contentEncoding = 'identity';
  /** `Retry-After` of an answer that is no stream. */
  retryAfter: string | undefined;
  /** The answer is a stream of events. */
  isOpen = false;
  private isAborted = false;
  /** The request is never sent again: see {@link onceOpen}. */
  private isStopped = false;
  private opened: (() => void) | undefined;
  private reason: unknown;
  private resumeRequest?: () => void;
  private abortRequest?: (reason?: Error) => void;
  private settle: { resolve(): void; reject(error: unknown): void } | undefined;
  private readonly refusal: Buffer[] = [];
  private refusalBytes = 0;
  private refusalTimer: NodeJS.Timeout | undefined;

  /**
   * @param take gets each piece of the stream. False: the connection is not read until {@link resume}, if it can be
   *   paused. An error of `take` ends the stream.
   * @param refusalMs time for the body of an answer that is no stream
   */
  constructor(
    private readonly take: (chunk: Buffer) => boolean,
    private readonly refusalMs: number,
  ) {}

  /** Sends the request, unless it has been stopped. Resolves at the end of the answer. */
  run(dispatcher: Dispatcher, options: Dispatcher.DispatchOptions): Promise<void> {
    this.abortRequest = undefined;
    return new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
      if (this.isStopped) this.onError(this.reason);
      else dispatcher.dispatch(options, this);
    });
  }

  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.isStopped = true;
    this.isAborted = true;
    this.reason = reason;
    this.abortRequest?.(reason as Error);
    this.onError(reason);
  }

  /** The engine may have the request. */
  get isSent(): boolean {
    return this.abortRequest !== undefined;
  }

  get isAnswered(): boolean {
    return this.status !== 0;
  }

  /** Stops a request that is sent and not answered. If a stream begins, `opened` is called. */
  onceOpen(reason: unknown, opened: () => void): void {
    this.isStopped = true;
    this.reason = reason;
    this.opened = opened;
  }

  resume(): void {
    if (this.settle !== undefined) this.resumeRequest?.();
  }

  /** Body of an answer that is no stream, as far as it was read. */
  get refusalText(): string {
    return Buffer.concat(this.refusal).toString('utf8');
  }

  onConnect(abort: (reason?: Error) => void): void {
    this.abortRequest = abort;
    if (this.isAborted) abort(this.reason as Error);
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true;
    const headers = util.parseHeaders(rawHeaders);
    this.status = status;
    this.contentType = String(headers['content-type'] ?? '').toLowerCase();
    // undici throws an assertion nobody can catch if a paused body ends with its connection.
    const { connection = 'keep-alive', 'transfer-encoding': encoding } = headers;
    if (encoding === 'chunked' && String(connection).toLowerCase() === 'keep-alive') this.resumeRequest = resume;
    this.contentEncoding = String(headers['content-encoding'] ?? 'identity').toLowerCase();
    const isCompressed = this.contentEncoding !== 'identity';
    this.isOpen = status === 200 && this.contentType.startsWith('text/event-stream') && !isCompressed;
    if (this.isStopped && this.isOpen && !this.isAborted) this.opened?.();
    else if (this.isStopped) this.abort(this.reason);
    else if (!this.isOpen) {
      this.retryAfter = headers['retry-after']?.toString();
      // The body of a compressed answer cannot be quoted, and may take as long as the generation.
      if (isCompressed) this.endRefusal();
      else this.refusalTimer = setTimeout(() => this.endRefusal(), this.refusalMs);
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.settle === undefined) return true;
    if (this.isOpen) {
      try {
        return this.take(chunk) || this.resumeRequest === undefined;
      } catch (error) {
        this.abort(error);
      }
    } else {
      this.refusal.push(chunk);
      this.refusalBytes += chunk.length;
      if (this.refusalBytes >= MAX_REFUSAL_BYTES) this.endRefusal();
    }
    return true;
  }

  onComplete(): void {
    this.end()?.resolve();
  }

  onError(error: unknown): void {
    // An answer that is no stream is complete without its body.
    if (this.status !== 0 && !this.isOpen && !this.isAborted) this.onComplete();
    else this.end()?.reject(error);
  }

  /** Ends an answer without the rest of its body. */
  private endRefusal(): void {
    this.onComplete();
    this.abortRequest?.(new Error('The rest of the answer is not needed'));
  }

  private end() {
    clearTimeout(this.refusalTimer);
    const { settle } = this;
    this.settle = undefined;
    return settle;
  }
}
