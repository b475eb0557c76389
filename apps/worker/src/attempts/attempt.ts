import type { AttemptId, AttemptRun, Claim } from '@broomwagon/contracts';
import { type Lease, LeasedCall, type WorkerEpoch } from '@broomwagon/generation';

export class Attempt extends LeasedCall {
  readonly key: string;
  private readonly claimedAt = performance.now();
  private lease: Lease | undefined;
  private askedAt: number | undefined;
  private firstTokenAt: number | undefined;
  private endedAt: number | undefined;

  constructor(
    readonly claim: Claim,
    worker: WorkerEpoch,
  ) {
    const { job, roundId, requestId, attempt } = claim;
    super(worker, { job, roundId, requestId, attempt });
    this.key = attemptKey(requestId, attempt);
  }

  beginGenerating(lease: Lease): void {
    this.lease = lease;
    this.askedAt = performance.now();
  }

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

  /** The fencing fields of every message about the attempt. */
  get identity() {
    return { requestId: this.claim.requestId, attempt: this.claim.attempt, ...this.worker };
  }
}

export function attemptKey(requestId: string, attempt: AttemptId): string {
  return `${requestId}#${attempt}`;
}
