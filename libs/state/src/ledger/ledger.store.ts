import { Injectable } from '@nestjs/common';
import type { JobId, PoolName, RoundId, TailPolicy } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

/** Counters of libs/policies/src/ledger. */
export interface StoredLedger {
  counters: Record<string, number>;
  /** Of samples that have not ended. */
  open: Record<string, number>;
  /** Of samples that were cut in earlier rounds and have run again, or were dropped, in this round; none of a job. */
  closed: Record<string, number>;
  /** Of that round, or of the job's last one. */
  policy?: TailPolicy;
}

/** Names a round. */
type LedgerRound = { job: JobId; roundId: RoundId };

const count = transition<LedgerRound, { more: boolean }>('ledger/count');

/** What tail policies cost, counted in the transitions themselves. */
@Injectable()
export class LedgerStore extends storeOf({
  read: transition<{ job: JobId; roundId?: RoundId }, StoredLedger>('ledger/read'),
}) {
  /** Counts the accepted groups of a completed round, page after page; continues where another process died. */
  async count(pool: PoolName, { job, roundId }: LedgerRound): Promise<void> {
    while ((await this.runner.run(count, pool, { job, roundId })).more);
  }
}
