import { Injectable } from '@nestjs/common';
import {
  decodeId,
  encodeId,
  type FinishSessionReply,
  type FinishSessionRequest,
  idPart,
  type JobId,
  type ServerStatus,
} from '@broomwagon/contracts';
import type { WaiterAnswers } from '../leases/grants';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** What a pool has counted about its sessions: `reached`, `ended` or `gap` with a bin -> how many. */
export type SessionLearning = { isOn: false } | { isOn: true; counts: Record<string, number> };

/** A session that has ended, and its engine, which must be notified. */
export interface SessionClose extends Pick<ServerStatus, 'serverId' | 'endpoint' | 'dialect'> {
  sessionId: string;
  /** Name of this close, for `notified` of the next call. */
  entry: string;
}

/** Sessions and the servers to which they are bound. */
@Injectable()
export class SessionStore extends createStoreClass({
  clearPage: transition<{ cursor?: string }, { cleared: number; cursor?: string }>('sessions/clear'),
  finishJobPage: transition<{ prefixes: string[]; cursor?: string }, { finished: number; cursor?: string }>(
    'sessions/finish-job',
  ),
  finish: transition<FinishSessionRequest, FinishSessionReply & WaiterAnswers>('sessions/finish'),
  /** Forgets at most 128 sessions: sessions idle for `idleMs`, and sessions above the limit of the pool. */
  evict: transition<{ idleMs: number }, { evicted: number; more: boolean }>('sessions/evict'),
  /** Gives at most 64 ended sessions whose engines must be notified, and forgets the notified ones. */
  close: transition<{ notified: string[] }, { closes: SessionClose[]; more: boolean }>('sessions/close'),
  /** Reads the counts of the sessions of a pool that admits sessions by KV memory, and stores their outlook. */
  learn: transition<{ outlook?: Record<string, number> }, SessionLearning>('sessions/outlook'),
}) {
  /** Forgets all sessions; a session with leases is forgotten with its last lease. @returns number of sessions */
  async clear(pool: string): Promise<number> {
    let sum = 0;
    for await (const { cleared } of this.pages('clearPage', pool)) sum += cleared;
    return sum;
  }

  /**
   * Ends the sessions of a job: an acquire has named the job, or a group of the job, or the id of the session begins
   * with the name of the job and a `/`. A session with leases is forgotten with its last lease.
   * @returns number of sessions
   */
  async finishJob(pool: string, job: JobId): Promise<number> {
    // A group id that is composed of job and group is stored as one plain id.
    const prefixes = [`${job}/`, encodeId(`${idPart(decodeId(job))}/`)];
    let sum = 0;
    for await (const { finished } of this.pages('finishJobPage', pool, { prefixes })) sum += finished;
    return sum;
  }
}
