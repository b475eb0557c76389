import { Injectable } from '@nestjs/common';
import type { JobId, PoolName, RoundId, TailPolicy } from '@broomwagon/contracts';
import type { RoundName } from '../rounds/round.types';
import { transition, FunctionRunner } from '../library/function-runner';

/** Counters of libs/policies/src/ledger. */
export interface StoredLedger {
  counters: Record<string, number>;
  /** Of samples that have not ended. */
  open: Record<string, number>;
  /** Of that round, or of the job's last one. */
  policy?: TailPolicy;
}

const count = transition<RoundName, { done: boolean }>('ledger/count');
const read = transition<{ job: JobId; roundId?: RoundId }, StoredLedger>('ledger/read');

/**
 * What tail policies cost, counted in the transitions themselves. Every method throws UNAVAILABLE and what it names.
 */
@Injectable()
export class LedgerStore {
  constructor(private readonly scripts: FunctionRunner) {}

  /** Counts the accepted groups of a completed round, page after page; goes on where another process died. */
  async count(pool: PoolName, { job, roundId }: RoundName): Promise<void> {
    while (!(await this.scripts.run(count, pool, { job, roundId })).done);
  }

  /** @throws JOB_NOT_FOUND, ROUND_NOT_FOUND */
  read(pool: PoolName, job: JobId, roundId?: RoundId): Promise<StoredLedger> {
    return this.scripts.run(read, pool, { job, roundId });
  }
}
