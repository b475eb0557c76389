import { randomUUID } from 'node:crypto';
import type { AttemptId, Claim, Epoch } from '@broomwagon/contracts';

/** One registration of this worker; voided by the next one. */
export interface WorkerEpoch {
  workerId: string;
  workerEpoch: Epoch;
}

/**
 * Why an attempt is stopped. `cut`, `abort`, `move` and `lease-lost`: hand it back with its tokens. `shutdown`: the same, said
 * differently. `timeout`: it has generated for the `timeoutMs` of its claim.
 * `void` and `fenced`: it is not ours any more, nothing is said about it.
 */
export type StopCause = 'cut' | 'abort' | 'move' | 'lease-lost' | 'shutdown' | 'timeout' | 'void' | 'fenced';

/** One claimed request in the hands of this worker. */
export class Attempt {
  readonly key: string;
  /** A random one: an id made of the request would meet answers kept for an earlier job of the same name. */
  readonly acquireId = randomUUID();
  private readonly controller = new AbortController();
  private stoppedBy: StopCause | undefined;

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

  /** The books do not have it as ours: no word about it would be believed. */
  get isVoid(): boolean {
    return this.stoppedBy === 'void' || this.stoppedBy === 'fenced';
  }

  /** Stops it. The first cause stays, unless a later one says that it is not ours at all. */
  stop(cause: StopCause): void {
    if (this.stoppedBy === undefined || cause === 'void' || cause === 'fenced') this.stoppedBy = cause;
    this.controller.abort();
  }

  /** What every message about it begins with: the fence. */
  get identity() {
    return { requestId: this.claim.requestId, attempt: this.claim.attempt, ...this.worker };
  }
}

export function attemptKey(requestId: string, attempt: AttemptId): string {
  return `${requestId}#${attempt}`;
}
