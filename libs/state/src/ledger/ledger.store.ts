import { Injectable } from '@nestjs/common';
import type { JobId, OpenRoundRequest, PoolName, RoundId, TailPolicy } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** Counters of a job or round, see libs/policies/src/ledger. */
export interface StoredLedger {
  counters: Record<string, number>;
  /** Counters of cut samples that have not ended. */
  open: Record<string, number>;
  /** Counters of samples cut in earlier rounds that have run again or were dropped in this round; empty for a job. */
  closed: Record<string, number>;
  /** Policy of the round, or of the last round of the job. */
  policy?: TailPolicy;
}

type CountedRound = Pick<OpenRoundRequest, 'job' | 'roundId'>;

const count = transition<CountedRound, { more: boolean }>('ledger/count');

/** Costs of tail policies, counted in the transitions themselves. */
@Injectable()
export class LedgerStore extends createStoreClass({
  read: transition<{ job: JobId; roundId?: RoundId }, StoredLedger>('ledger/read'),
}) {
  /** Counts the accepted groups of a completed round, page by page. Continues a count that another process started. */
  async count(pool: PoolName, { job, roundId }: CountedRound): Promise<void> {
    while ((await this.runner.run(count, pool, { job, roundId })).more);
  }
}
