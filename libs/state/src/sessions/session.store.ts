import { Injectable } from '@nestjs/common';
import type { FinishSessionReply, FinishSessionRequest } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';

const TRANSITIONS = {
  finish: transition<FinishSessionRequest, FinishSessionReply>('sessions/finish'),
  evict: transition<{ idleMs: number }, { evicted: number; more: boolean }>('sessions/evict'),
  clear: transition<{ cursor: string }, { cleared: number; cursor: string }>('sessions/clear'),
};

/** Sessions and the servers they are bound to. */
@Injectable()
export class SessionStore {
  constructor(private readonly runner: FunctionRunner) {}

  finish(pool: string, sessionId: string): Promise<FinishSessionReply> {
    return this.runner.run(TRANSITIONS.finish, pool, { sessionId });
  }

  /** Forgets at most 128 sessions: those idle for `idleMs`, or those above the limit of the pool. */
  evict(pool: string, idleMs: number): Promise<{ evicted: number; more: boolean }> {
    return this.runner.run(TRANSITIONS.evict, pool, { idleMs });
  }

  /** Forgets all sessions; one with leases is forgotten with its last lease. Returns how many. */
  async clear(pool: string): Promise<number> {
    let cleared = 0;
    for (let cursor: string | undefined; cursor !== '0';) {
      const page: { cleared: number; cursor: string } = await this.runner.run(TRANSITIONS.clear, pool, {
        cursor: cursor ?? '0',
      });
      cleared += page.cleared;
      ({ cursor } = page);
    }
    return cleared;
  }
}
