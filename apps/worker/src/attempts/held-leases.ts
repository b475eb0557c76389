import { Injectable } from '@nestjs/common';
import type { Attempt } from './attempt';

const DIGEST_MODULUS = 2 ** 40;

/** A lease this worker holds. */
export interface HeldLease {
  leaseId: string;
  attempt: Attempt;
  /** Its release was sent: Redis may have removed the lease. */
  releasing: boolean;
}

/** The leases this worker holds or has asked for, with the digest its heartbeat carries. */
@Injectable()
export class HeldLeases {
  private readonly held = new Map<string, HeldLease>();
  private readonly asked = new Set<string>();
  private digestSum = 0;

  /** Until `granted` or `dropped`, a lease of this acquire may exist whose reply is on its way. */
  asking(attempt: Attempt): void {
    this.asked.add(attempt.acquireId);
  }

  granted(attempt: Attempt, leaseId: string): void {
    this.asked.delete(attempt.acquireId);
    this.held.set(attempt.acquireId, { leaseId, attempt, releasing: false });
    this.digestSum = (this.digestSum + sequenceOf(leaseId)) % DIGEST_MODULUS;
  }

  releasing(attempt: Attempt): void {
    const lease = this.held.get(attempt.acquireId);
    if (lease !== undefined) lease.releasing = true;
  }

  dropped(attempt: Attempt): void {
    this.asked.delete(attempt.acquireId);
    const lease = this.held.get(attempt.acquireId);
    if (lease === undefined) return;
    this.held.delete(attempt.acquireId);
    this.digestSum = (this.digestSum - sequenceOf(lease.leaseId) + DIGEST_MODULUS) % DIGEST_MODULUS;
  }

  forgetAll(): void {
    this.held.clear();
    this.asked.clear();
    this.digestSum = 0;
  }

  /** Whether the lease is held, or its reply may be on its way. */
  knows(leaseId: string): boolean {
    const acquireId = leaseId.slice(leaseId.indexOf('.') + 1);
    return this.asked.has(acquireId) || this.held.get(acquireId)?.leaseId === leaseId;
  }

  /** Whether exactly this lease is held and its release was not sent. */
  holds(lease: HeldLease): boolean {
    return this.held.get(lease.attempt.acquireId) === lease && !lease.releasing;
  }

  /** The attempt that runs under this lease. */
  attemptOf(leaseId: string): Attempt | undefined {
    const lease = this.held.get(leaseId.slice(leaseId.indexOf('.') + 1));
    return lease?.leaseId === leaseId ? lease.attempt : undefined;
  }

  list(): HeldLease[] {
    return [...this.held.values()];
  }

  get count(): number {
    return this.held.size;
  }

  /** Sum of the sequences of the leaseIds, modulo 2^40. */
  get digest(): number {
    return this.digestSum;
  }
}

function sequenceOf(leaseId: string): number {
  return Number(leaseId.slice(0, leaseId.indexOf('.'))) % DIGEST_MODULUS;
}
