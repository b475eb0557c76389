import { Injectable } from '@nestjs/common';
import type { JobId, JobLedgerReply, LedgerBounds, PoolName, RoundId, TailPolicy } from '@broomwagon/contracts';
import { ledgerAlarms, summariseLedger } from '@broomwagon/policies';
import { LedgerStore } from '@broomwagon/state';

/** What the tail policy costs: read from counters that the transitions keep. */
@Injectable()
export class LedgerService {
  constructor(private readonly ledgers: LedgerStore) {}

  /** Over all steps of a job, or of one round that is kept. @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND */
  async read(pool: PoolName, job: JobId, roundId?: RoundId): Promise<JobLedgerReply> {
    if (roundId !== undefined) await this.ledgers.count(pool, { job, roundId });
    const { counters, open, policy } = await this.ledgers.read(pool, { job, roundId });
    const summary = summariseLedger(counters, open);
    return { summary, alarms: ledgerAlarms(summary, policy && boundsOf(policy)) };
  }
}

function boundsOf({ maxOffPolicyShare, maxVersionSpan, maxCuts }: TailPolicy): LedgerBounds {
  return { offPolicyShare: maxOffPolicyShare, versionSpan: maxVersionSpan, cutsPerGroup: maxCuts };
}
