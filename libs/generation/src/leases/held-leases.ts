import { Injectable } from '@nestjs/common';
import type { LeasedCall } from './leased-call';

const DIGEST_MODULUS = 2 ** 40;

export interface HeldLease {
  leaseId: string;
  call: LeasedCall;
  /** The release was sent: Redis may have removed the lease. */
  releasing: boolean;
}

/** The leases that this worker holds or has requested, with their digest for the heartbeat. */
@Injectable()
export class HeldLeases {
  private readonly held = new Map<string, HeldLease>();
  private readonly asked = new Map<string, LeasedCall>();
  private digestSum = 0;

  /** Records an acquire. Until `granted` or `dropped`, its lease may exist although no reply has arrived. */
  asking(call: LeasedCall): void {
    this.asked.set(call.acquireId, call);
  }

  granted(call: LeasedCall, leaseId: string): void {
    this.asked.delete(call.acquireId);
    this.held.set(call.acquireId, { leaseId, call, releasing: false });
    this.digestSum = (this.digestSum + parseSequence(leaseId)) % DIGEST_MODULUS;
  }

  /** Records that another call runs under the lease. */
  replace(call: LeasedCall, next: LeasedCall): void {
    const lease = this.held.get(call.acquireId);
    if (lease?.call === call) lease.call = next;
  }

  releasing(call: LeasedCall): void {
    const lease = this.held.get(call.acquireId);
    if (lease !== undefined) lease.releasing = true;
  }

  dropped(call: LeasedCall): void {
    this.asked.delete(call.acquireId);
    const lease = this.held.get(call.acquireId);
    if (lease === undefined) return;
    this.held.delete(call.acquireId);
    this.digestSum = (this.digestSum - parseSequence(lease.leaseId) + DIGEST_MODULUS) % DIGEST_MODULUS;
  }

  /** Stops all calls of an expired epoch and removes their leases. */
  forgetAll(): void {
    for (const call of this.asked.values()) call.stop('fenced');
    for (const { call } of this.held.values()) call.stop('fenced');
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
    return this.held.get(lease.call.acquireId) === lease && !lease.releasing;
  }

  findCall(leaseId: string): LeasedCall | undefined {
    const lease = this.held.get(leaseId.slice(leaseId.indexOf('.') + 1));
    return lease?.leaseId === leaseId ? lease.call : undefined;
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

function parseSequence(leaseId: string): number {
  return Number(leaseId.slice(0, leaseId.indexOf('.'))) % DIGEST_MODULUS;
}
