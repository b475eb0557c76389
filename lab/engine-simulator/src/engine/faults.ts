/** What can be made to go wrong with the next generate requests. */
export const FAULT_KINDS = [
  /** Answers 500, 429 or 400 with a JSON error. */
  'error-500',
  'error-429',
  'error-400',
  /** Answers 200 with a page of HTML, as a misconfigured proxy does. */
  'html',
  /** Never answers. */
  'hang',
  /** Closes the connection before the answer. */
  'close',
  /** After `afterTokens`: closes the connection, ends the response without or with `[DONE]` and without a reason. */
  'close-mid-stream',
  'end-mid-stream',
  'done-mid-stream',
  /** After `afterTokens`, of SGLang's `/generate`: finish reason `abort` with the status 503 or 400. */
  'abort-with-503',
  'abort-with-400',
  /** After `afterTokens`: sends nothing more, an error object, or one line of 2 MiB. */
  'stall',
  'error-in-stream',
  'long-line',
  /** As `stall`, behind a proxy that keeps the connection when its client is gone: only an abort by id ends it. */
  'stall-unnoticed',
  /** Held back until the next abort by id has been answered; then, too, only an abort by id ends it. */
  'late',
  /** The next aborts by id are answered 500. */
  'abort-500',
  /** `/health` answers 503 until cleared. */
  'unhealthy',
  /** Clears everything above. */
  'none',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  kind: FaultKind;
  /** How many requests it hits; default 1. */
  count: number;
  /** Tokens sent before it strikes; default 1. */
  afterTokens: number;
}

/** Faults that wait for the next requests, in order. */
export class FaultQueue {
  unhealthy = false;
  private refusedAborts = 0;
  private queue: Fault[] = [];

  add(fault: Fault): void {
    if (fault.kind === 'none') this.clear();
    else if (fault.kind === 'unhealthy') this.unhealthy = true;
    else if (fault.kind === 'abort-500') this.refusedAborts += fault.count;
    else this.queue.push({ ...fault });
  }

  /** The fault for the request that has just come, if any. */
  take(): Fault | undefined {
    const fault = this.queue[0];
    if (fault && --fault.count <= 0) this.queue.shift();
    return fault;
  }

  /** Whether an abort that has just come is refused. */
  takeAbort(): boolean {
    return this.refusedAborts > 0 && this.refusedAborts-- > 0;
  }

  clear(): void {
    this.queue = [];
    this.refusedAborts = 0;
    this.unhealthy = false;
  }
}
