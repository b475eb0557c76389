import { randomUUID } from 'node:crypto';
import type { AttemptId, AttemptRun, Claim, Epoch, LeaseGrant } from '@broomwagon/contracts';

/** One registration of this worker; the next one expires it. */
export interface WorkerEpoch {
  workerId: string;
  workerEpoch: Epoch;
}

/**
 * Why an attempt is stopped. `cut`, `abort`, `move` and `lease-lost`: it is returned with its tokens. `shutdown`: the
 * same, reported with another reason. `timeout`: the sample has generated for the `timeoutMs` of its claim.
 * `expired` and `fenced`: another worker may own the request, so this worker reports nothing about it.
 */
export type StopCause = 'cut' | 'abort' | 'move' | 'lease-lost' | 'shutdown' | 'timeout' | 'expired' | 'fenced';

/** One claimed request that this worker runs. */
export class Attempt {
  readonly key: string;
  /** Random: an id made of the request could get stored answers of an earlier job with the same name. */
  readonly acquireId = randomUUID();
  private readonly controller = new AbortController();
  private stoppedBy: StopCause | undefined;
  private readonly claimedAt = performance.now();
  private lease: LeaseGrant | undefined;
  private askedAt: number | undefined;
  private firstTokenAt: number | undefined;
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

  /** The control plane does not count the attempt as one of this worker: any report would be rejected. */
  get isExpired(): boolean {
    return this.stoppedBy === 'expired' || this.stoppedBy === 'fenced';
  }

  /** Stops the attempt. The first cause stays, except that `expired` and `fenced` replace it. */
  stop(cause: StopCause): void {
    if (this.stoppedBy === undefined || cause === 'expired' || cause === 'fenced') this.stoppedBy = cause;
    this.controller.abort();
  }

  /** The request is sent to the engine. */
  beginGenerating(lease: LeaseGrant): void {
    this.lease = lease;
    this.askedAt = performance.now();
  }

  /** Tokens have arrived. */
  receiveTokens(): void {
    this.firstTokenAt ??= performance.now();
  }

  endGenerating(): void {
    this.endedAt = performance.now();
  }

  /** Generation time so far, whole milliseconds; undefined for a sample without `timeoutMs`. */
  get generatedMs(): number | undefined {
    if (this.claim.timeoutMs === undefined || this.askedAt === undefined) return undefined;
    return Math.round((this.endedAt ?? performance.now()) - this.askedAt);
  }

  /** Server and times for the timeline of the round; undefined without a server. */
  get run(): AttemptRun | undefined {
    if (this.lease === undefined || this.askedAt === undefined) return undefined;
    const { serverId, weightVersion } = this.lease;
    const sinceClaimMs = (at: number): number => Math.round(at - this.claimedAt);
    return {
      serverId,
      weightVersion,
      leasedMs: sinceClaimMs(this.askedAt),
      ...(this.firstTokenAt === undefined ? {} : { firstTokenMs: sinceClaimMs(this.firstTokenAt) }),
      endedMs: sinceClaimMs(this.endedAt ?? performance.now()),
    };
  }

  /** Generation time that is left, milliseconds; 0: earlier attempts have used the time of the sample. */
  get timeLeftMs(): number | undefined {
    const { timeoutMs, generatedMs = 0 } = this.claim;
    return timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - generatedMs);
  }

  /** Fields of every log line and span about the attempt. */
  get ids() {
    const { job, roundId, requestId, attempt } = this.claim;
    return { job, roundId, requestId, attempt };
  }

  /** The fencing fields of every message about the attempt. */
  get identity() {
    return { requestId: this.claim.requestId, attempt: this.claim.attempt, ...this.worker };
  }
}

export function attemptKey(requestId: string, attempt: AttemptId): string {
  return `${requestId}#${attempt}`;
}
