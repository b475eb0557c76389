import { Injectable } from '@nestjs/common';
import type { JobId, JobLedgerReply, JobStatus, PoolName } from '@broomwagon/contracts';
import { isBroomwagonError } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { RoundStore, type StoredLedger } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { LedgerMetrics } from '../ledger/ledger.metrics';
import { LedgerSum } from '../ledger/ledger-sum';
import { toLedgerReply, LedgerService } from '../ledger/ledger.service';

const READ_INTERVAL_MS = 5_000;
/** Interval of reads of all jobs. In between, only jobs with an open round and recently changed jobs are read. */
const READ_ALL_MS = 300_000;
/** Time after a change for which a job counts as recently changed. */
const CHANGED_OF_LATE_MS = 60_000;
/** Time after its last change for which the ledger of a job without an open round is a metric. */
const LEDGER_SHOWN_MS = 3_600_000;

interface KnownJob {
  status: JobStatus;
  text: string;
  changedAtMs: number;
  stored: StoredLedger;
  ledger: JobLedgerReply;
}
interface KnownPool {
  jobs: Map<JobId, KnownJob>;
  readAllAtMs: number;
  sum: LedgerSum;
}

/** Reads the counts of jobs for the gauges. Jobs at rest are read seldom. */
@Injectable()
export class JobTotals {
  private readonly pools = new Map<PoolName, KnownPool>();

  constructor(
    private readonly rounds: RoundStore,
    private readonly ledgers: LedgerService,
    private readonly counts: CoordinatorMetrics,
    private readonly ledgerMetrics: LedgerMetrics,
  ) {}

  /** @throws BroomwagonError UNAVAILABLE */
  @InEachPool('totals', READ_INTERVAL_MS)
  async read(pool: PoolName, nowMs = Date.now()): Promise<void> {
    const known = this.pools.get(pool) ?? { jobs: new Map<JobId, KnownJob>(), readAllAtMs: 0, sum: new LedgerSum() };
    this.pools.set(pool, known);
    const open = new Set(await this.rounds.allJobs(pool, true));
    if (nowMs - known.readAllAtMs >= READ_ALL_MS) {
      const all = new Set(await this.rounds.allJobs(pool, false));
      for (const job of known.jobs.keys()) if (!all.has(job)) replace(known, job);
      for (const job of all) await this.readJob(pool, known, job, nowMs);
      known.readAllAtMs = nowMs;
    } else {
      const late = [...known.jobs].filter(([, { changedAtMs }]) => nowMs - changedAtMs < CHANGED_OF_LATE_MS);
      for (const job of new Set([...open, ...late.map(([job]) => job)])) await this.readJob(pool, known, job, nowMs);
    }
    const shown = [...known.jobs].filter(
      ([job, { changedAtMs }]) => open.has(job) || nowMs - changedAtMs < LEDGER_SHOWN_MS,
    );
    shown.sort(([, one], [, other]) => other.changedAtMs - one.changedAtMs);
    this.ledgerMetrics.show(
      pool,
      known.sum.summary(),
      shown.map(([job, { ledger }]) => ({ job, ...ledger })),
    );
    this.counts.totals(
      pool,
      [...known.jobs.values()].map(({ status }) => status),
    );
  }

  /** Removes the totals and the series of all other pools. */
  keepOnly(pools: readonly PoolName[]): void {
    for (const pool of this.pools.keys()) {
      if (pools.includes(pool)) continue;
      this.ledgerMetrics.hide(pool);
      this.pools.delete(pool);
    }
  }

  private async readJob(pool: PoolName, known: KnownPool, job: JobId, nowMs: number): Promise<void> {
    const status = await this.rounds.jobStatus(pool, { job }).catch((error: unknown) => {
      if (isBroomwagonError(error, 'JOB_NOT_FOUND')) return undefined;
      throw error;
    });
    if (status === undefined) return replace(known, job);
    const text = JSON.stringify(status);
    if (known.jobs.get(job)?.text === text) return;
    const stored = await this.ledgers.stored(pool, job);
    replace(known, job, { status, text, changedAtMs: nowMs, stored, ledger: toLedgerReply(stored) });
  }
}

/** Replaces the totals of a job. @param next absent: the job is gone */
function replace(known: KnownPool, job: JobId, next?: KnownJob): void {
  const before = known.jobs.get(job);
  if (before !== undefined) known.sum.remove(before.stored);
  if (next === undefined) {
    known.jobs.delete(job);
    return;
  }
  known.sum.add(next.stored);
  known.jobs.set(job, next);
}
