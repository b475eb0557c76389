/** Faults that tests can inject into the next generate requests. */
export const FAULT_KINDS = [
  /** Answers 500, 503, 429 or 400 with a JSON error. */
  'error-500',
  'error-503',
  'error-429',
  'error-400',
  /** Answers 200 with a page of HTML, as a misconfigured proxy does. */
  'html',
  /** Accepts the call and never answers. */
  'hang',
  /** Closes the connection before the answer. */
  'close',
  /** After `afterTokens`: closes the connection, ends the response without or with `[DONE]` and without a reason. */
  'close-mid-stream',
  'end-mid-stream',
  'done-mid-stream',
  /** After `afterTokens`, in SGLang's `/generate`: sends the finish reason `abort` with the status 503 or 400. */
  'abort-with-503',
  'abort-with-400',
  /** After `afterTokens`: sends nothing more, an error object, or one line of 2 MiB. */
  'stall',
  'error-in-stream',
  'long-line',
  /** Stalls behind a proxy that keeps the connection when its client is gone: only an abort by id ends the request. */
  'stall-unnoticed',
  /** Holds the request back until the next abort by id is answered; then only another abort by id ends it. */
  'late',
  /** Answers 500 to the next aborts by id. */
  'abort-500',
  /** Answers 503 to `/health` until cleared. */
  'unhealthy',
  /** Clears all faults above. */
  'none',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  kind: FaultKind;
  /** Number of requests that the fault hits; default 1. */
  count: number;
  /** Tokens sent before the fault takes effect; default 1. */
  afterTokens: number;
}

/** Faults of the next requests, in order. */
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

  /** Takes the fault for a request that has just arrived, if any. */
  take(): Fault | undefined {
    const fault = this.queue[0];
    if (fault && --fault.count <= 0) this.queue.shift();
    return fault;
  }

  /** Whether an abort that has just arrived must be refused. */
  takeAbort(): boolean {
    return this.refusedAborts > 0 && this.refusedAborts-- > 0;
  }

  clear(): void {
    this.queue = [];
    this.refusedAborts = 0;
    this.unhealthy = false;
  }
}
