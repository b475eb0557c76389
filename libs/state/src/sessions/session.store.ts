import { Injectable } from '@nestjs/common';
import type { FinishSessionReply, FinishSessionRequest } from '@broomwagon/contracts';
import type { WaiterAnswers } from '../leases/grants';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** What a pool has counted about its sessions: `reached`, `ended` or `gap` with a bin -> how many. */
export type SessionLearning = { isOn: false } | { isOn: true; counts: Record<string, number> };

/** Sessions and the servers to which they are bound. */
@Injectable()
export class SessionStore extends createStoreClass({
  clearPage: transition<{ cursor?: string }, { cleared: number; cursor?: string }>('sessions/clear'),
  finish: transition<FinishSessionRequest, FinishSessionReply & WaiterAnswers>('sessions/finish'),
  /** Forgets at most 128 sessions: sessions idle for `idleMs`, and sessions above the limit of the pool. */
  evict: transition<{ idleMs: number }, { evicted: number; more: boolean }>('sessions/evict'),
  /** Reads the counts of the sessions of a pool that admits sessions by KV memory, and stores their outlook. */
  learn: transition<{ outlook?: Record<string, number> }, SessionLearning>('sessions/outlook'),
}) {
  /** Forgets all sessions; a session with leases is forgotten with its last lease. @returns number of sessions */
  async clear(pool: string): Promise<number> {
    let sum = 0;
    for await (const { cleared } of this.pages('clearPage', pool)) sum += cleared;
    return sum;
  }
}
