import { randomUUID } from 'node:crypto';
import type { AttemptId, Claim, Epoch } from '@broomwagon/contracts';

/** One registration of this worker; voided by the next one. */
export interface WorkerEpoch {
  workerId: string;
  workerEpoch: Epoch;
}

/**
 * Why an attempt is stopped. `cut`, `abort`, `move` and `lease-lost`: hand it back with its tokens. `shutdown`: the
 * same, said differently. `timeout`: the sample has generated for the `timeoutMs` of its claim.
 * `expired` and `fenced`: another worker may own the request, so this worker reports nothing about it.
 */
export type StopCause = 'cut' | 'abort' | 'move' | 'lease-lost' | 'shutdown' | 'timeout' | 'expired' | 'fenced';

/** One claimed request in the hands of this worker. */
export class Attempt {
  readonly key: string;
  /** A random one: an id made of the request would meet answers kept for an earlier job of the same name. */
  readonly acquireId = randomUUID();
  private readonly controller = new AbortController();
  private stoppedBy: StopCause | undefined;
  private askedAt: number | undefined;
  private endedAt: number | undefined;

  constructor(
    readonly claim: Claim,
    readonly worker: WorkerEpoch,
  ) {
    this.key = attemptKey(claim.requestId, claim.attempt);
  }

  /** Aborted once the attempt is stopped. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get cause(): StopCause | undefined {
    return this.stoppedBy;
  }

  /** The counts do not have it as ours: no word about it would be believed. */
  get isExpired(): boolean {
    return this.stoppedBy === 'expired' || this.stoppedBy === 'fenced';
  }

  /** Stops it. The first cause stays, unless a later one says that it is not ours at all. */
  stop(cause: StopCause): void {
    if (this.stoppedBy === undefined || cause === 'expired' || cause === 'fenced') this.stoppedBy = cause;
    this.controller.abort();
  }

  /** From here on it generates: its engine is asked. */
  beginGenerating(): void {
    this.askedAt = performance.now();
  }

  endGenerating(): void {
    this.endedAt = performance.now();
  }

  /** How long it has generated so far, whole milliseconds; of a sample without a time of its own nobody asks. */
  get generatedMs(): number | undefined {
    if (this.claim.timeoutMs === undefined || this.askedAt === undefined) return undefined;
    return Math.round((this.endedAt ?? performance.now()) - this.askedAt);
  }

  /** How long it may generate, milliseconds; 0: its earlier attempts have used the time of the sample. */
  get timeLeftMs(): number | undefined {
    const { timeoutMs, generatedMs = 0 } = this.claim;
    return timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - generatedMs);
  }

  /** What every message about it begins with: the fence. */
  get identity() {
    return { requestId: this.claim.requestId, attempt: this.claim.attempt, ...this.worker };
  }
}

export function attemptKey(requestId: string, attempt: AttemptId): string {
  return `${requestId}#${attempt}`;
}
