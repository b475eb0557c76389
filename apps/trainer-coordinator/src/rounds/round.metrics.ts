import { Injectable } from '@nestjs/common';
import { decodeId, type JobId, type PoolName, type RoundSummary } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import { CoordinatorConfig } from '../coordinator.config';

/** Buckets of rounds and steps, seconds: from tests to days of a large model. */
const ROUND_BUCKETS_S = [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 43_200];
const SHARE_BUCKETS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
/** Minimum completed rounds of which a median says something. */
const MIN_MEASURED = 3;

type Labels = Record<'pool' | 'training_job', string>;

/** A job with its kept rounds, latest step first. */
export interface JobRounds {
  job: JobId;
  rounds: readonly RoundSummary[];
}

/**
 * Metrics of rounds and steps. Counters and histograms are of the replica that relays the events of a pool. Gauges are
 * read from Redis, so every replica shows the same values.
 */
@Injectable()
export class RoundMetrics {
  private readonly rounds = this.metrics.counter(
    'rounds_total',
    'Rounds by outcome: opened, completed (has its groups), trained (closed by the trainer), cancelled',
    ['pool', 'outcome'],
  );
  private readonly roundSeconds = this.metrics.histogram(
    'round_seconds',
    'Time from the opening of a round until it has its groups',
    ['pool'],
    ROUND_BUCKETS_S,
  );
  private readonly stepSeconds = this.metrics.histogram(
    'step_seconds',
    'Time from the opening of a round until its trainer closes it: generation and training of one step',
    ['pool'],
    ROUND_BUCKETS_S,
  );
  private readonly tail = this.metrics.histogram(
    'round_tail_ratio',
    'Share of the time of a round after 90 % of its groups were accepted',
    ['pool'],
    SHARE_BUCKETS,
  );
  private readonly age = this.metrics.readGauge(
    'open_round_seconds',
    'Age of the open round of a job, from its opening; absent without an open round',
    ['pool', 'training_job'],
  );
  private readonly median = this.metrics.readGauge(
    'round_median_seconds',
    `Median time of the last completed rounds of a job, at most 16; absent for fewer than ${MIN_MEASURED}`,
    ['pool', 'training_job'],
  );
  private readonly accepted = this.metrics.readGauge(
    'open_round_accepted_ratio',
    'Accepted groups of the open round of a job / groups that it needs',
    ['pool', 'training_job'],
  );

  /** Labels of the gauges of each pool. */
  private readonly shown = new Map<PoolName, Labels[]>();

  constructor(
    private readonly metrics: Metrics,
    private readonly config: CoordinatorConfig,
  ) {}

  count(pool: PoolName, outcome: 'opened' | 'completed' | 'trained' | 'cancelled'): void {
    this.rounds.inc({ pool, outcome });
  }

  /** @param tailShare share of the time after 90 % of the groups; undefined if this replica did not see it begin */
  completed(pool: PoolName, durationMs: number, tailShare: number | undefined): void {
    this.roundSeconds.observe({ pool }, durationMs / 1_000);
    if (tailShare !== undefined) this.tail.observe({ pool }, tailShare);
  }

  step(pool: PoolName, durationMs: number): void {
    this.stepSeconds.observe({ pool }, durationMs / 1_000);
  }

  /** Replaces the gauges of a pool by the open rounds of at most METRICS_JOBS jobs. */
  show(pool: PoolName, jobs: readonly JobRounds[], nowMs: number): void {
    const before = this.shown.get(pool) ?? [];
    for (const labels of before) for (const gauge of [this.age, this.median, this.accepted]) gauge.remove(labels);
    const shown: Labels[] = [];
    this.shown.set(pool, shown);
    for (const { job, rounds } of jobs.slice(0, this.config.metricsJobs)) {
      const labels = { pool, training_job: decodeId(job) };
      shown.push(labels);
      const open = rounds.find(({ state }) => state === 'opening' || state === 'open');
      if (open !== undefined) {
        this.age.set(labels, Math.max(0, nowMs - open.openedAtMs) / 1_000);
        this.accepted.set(labels, open.acceptedGroups / open.neededGroups);
      }
      const median = findMedianMs(rounds, open);
      if (median !== undefined) this.median.set(labels, median / 1_000);
    }
  }
}

/** Median time of completed rounds, of the kind of the open round if there are enough: long rounds take longer. */
function findMedianMs(rounds: readonly RoundSummary[], open: RoundSummary | undefined): number | undefined {
  const completed = rounds.filter(({ completedAtMs }) => completedAtMs !== undefined);
  const alike = completed.filter(({ kind }) => kind === open?.kind);
  const times = (alike.length >= MIN_MEASURED ? alike : completed)
    .map(({ openedAtMs, completedAtMs }) => completedAtMs! - openedAtMs)
    .toSorted((one, other) => one - other);
  return times.length < MIN_MEASURED ? undefined : times[Math.floor(times.length / 2)];
}
