import { Injectable } from '@nestjs/common';
import {
  isBroomwagonError,
  type JobId,
  type JobLedgerReply,
  type LedgerBounds,
  type PoolLedgerReply,
  type PoolName,
  type RoundId,
  type TailPolicy,
} from '@broomwagon/contracts';
import {
  acceptanceByLength,
  addCounters,
  DEFAULT_VERSION_SPAN,
  ledgerAlarms,
  type LedgerCounters,
  measuredCosts,
  summariseLedger,
} from '@broomwagon/policies';
import { InspectionStore, LedgerStore, splitPages, RoundStore, type StoredLedger } from '@broomwagon/state';
import { LedgerSum } from './ledger-sum';

/** Maximum ledgers read at the same time: a pool may have thousands of jobs, and a caller waits for all ledgers. */
const READS_AT_ONCE = 32;

/** Costs of the tail policy, read from counters that the transitions keep. */
@Injectable()
export class LedgerService {
  constructor(
    private readonly ledgers: LedgerStore,
    private readonly inspections: InspectionStore,
    private readonly rounds: RoundStore,
  ) {}

  /**
   * Ledger over all steps of a job, or of one round that is kept.
   * @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND
   */
  async read(pool: PoolName, job: JobId, roundId?: RoundId): Promise<JobLedgerReply> {
    if (roundId !== undefined) await this.ledgers.count(pool, { job, roundId });
    return toLedgerReply(await this.ledgers.read(pool, { job, roundId }));
  }

  stored(pool: PoolName, job: JobId): Promise<StoredLedger> {
    return this.ledgers.read(pool, { job });
  }

  async ofPool(pool: PoolName): Promise<PoolLedgerReply> {
    const sum = new LedgerSum();
    let jobs = 0;
    for (const page of splitPages(await this.rounds.allJobs(pool, false), READS_AT_ONCE)) {
      for (const ledger of await Promise.all(page.map((job) => this.storedIfThere(pool, job)))) {
        if (ledger === undefined) continue;
        sum.add(ledger);
        jobs += 1;
      }
    }
    return { summary: sum.summary(), jobs };
  }

  /** The counters of a job; undefined if the job is deleted. */
  private storedIfThere(pool: PoolName, job: JobId): Promise<StoredLedger | undefined> {
    return this.stored(pool, job).catch((error: unknown) => {
      if (isBroomwagonError(error, 'JOB_NOT_FOUND')) return undefined;
      throw error;
    });
  }

  /**
   * Ledger of a round, with the length bias of all rounds up to this round.
   * @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND
   */
  async ofRound(pool: PoolName, job: JobId, roundId: RoundId): Promise<JobLedgerReply> {
    const ledger = await this.read(pool, job, roundId);
    const { rounds } = await this.inspections.rounds(pool, { job });
    // The latest round is the first in `rounds`.
    const later = rounds.slice(0, Math.max(0, rounds.map((one) => one.roundId).indexOf(roundId)));
    const { counters, open } = await this.without(
      pool,
      job,
      later.map((round) => round.roundId),
    );
    return { ...ledger, lengthBiasSoFar: summariseLedger(counters, open).lengthBias };
  }

  /**
   * Acceptance by response length, from all other rounds of the job.
   * @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND
   */
  async acceptanceBefore(pool: PoolName, job: JobId, roundId: RoundId): Promise<ReturnType<typeof acceptanceByLength>> {
    const { counters, open } = await this.without(pool, job, [roundId]);
    return acceptanceByLength(counters, open);
  }

  private async without(
    pool: PoolName,
    job: JobId,
    roundIds: readonly RoundId[],
  ): Promise<{ counters: LedgerCounters; open: LedgerCounters }> {
    const { counters, open } = await this.ledgers.read(pool, { job });
    for (const roundId of roundIds) {
      const ofRound = await this.ledgers.read(pool, { job, roundId });
      addCounters(counters, negative(ofRound.counters));
      addCounters(open, negative(ofRound.open), ofRound.closed);
    }
    // A round may have counted more after the read of the job.
    return { counters: atLeastZero(counters), open: atLeastZero(open) };
  }
}

/** Reply of `job.ledger`. */
export function toLedgerReply({ counters, open, policy }: StoredLedger): JobLedgerReply {
  const summary = summariseLedger(counters, open);
  // `maxWaste` of `auto` bounds only tokens that the tail policy throws away.
  const isOfPolicy = policy?.maxWaste !== undefined && policy.alarms?.wasteShare === undefined;
  const waste = isOfPolicy ? { ...summary.waste, share: measuredCosts(summary).wasteShare } : summary.waste;
  return { summary, alarms: ledgerAlarms({ ...summary, waste }, policy && buildBounds(policy)) };
}

function negative(counters: LedgerCounters): LedgerCounters {
  return Object.fromEntries(Object.entries(counters).map(([name, count]) => [name, -count]));
}

function atLeastZero(counters: LedgerCounters): LedgerCounters {
  return Object.fromEntries(Object.entries(counters).map(([name, count]) => [name, Math.max(0, count)]));
}

function buildBounds({ name, maxOffPolicyShare, maxCuts, maxLengthBias, maxWaste, alarms, ...policy }: TailPolicy) {
  const { maxVersionSpan = name === 'auto' ? DEFAULT_VERSION_SPAN : undefined } = policy;
  const bounds: LedgerBounds = {
    offPolicyShare: maxOffPolicyShare,
    versionSpan: maxVersionSpan,
    cutsPerGroup: maxCuts,
    wasteShare: maxWaste,
    // Without `maxLengthBias`, the ledger uses its default bound.
    ...(maxLengthBias === undefined ? {} : { lengthBias: maxLengthBias }),
  };
  return { ...bounds, ...alarms };
}
