import { Injectable } from '@nestjs/common';
import type { JobStatus } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';

/** What the coordinator counts. Gauges are read from the counts periodically, so every replica shows the same. */
@Injectable()
export class CoordinatorMetrics {
  private readonly requests = this.metrics.gauge(
    'requests',
    'Requests of all jobs of a pool by state; from the counts',
    ['pool', 'state'],
  );
  private readonly groups = this.metrics.gauge(
    'groups',
    'Groups of all jobs of a pool: submitted, trained, failed, dropped',
    ['pool', 'state'],
  );
  private readonly longtail = this.metrics.gauge(
    'longtail_groups',
    'Groups in the long-tail queues or on their way there',
    ['pool', 'state'],
  );
  readonly claims = this.metrics.counter(
    'claims_total',
    'Answers of claims by outcome: given, empty, parked, granted, expired',
    ['outcome'],
  );
  readonly attempts = this.metrics.counter('attempts_total', 'Ends of attempts by what became of the request', [
    'outcome',
  ]);
  readonly sweepPages = this.metrics.counter(
    'sweep_pages_total',
    'Pages of the sweep by kind; cut without end: workers do not confirm',
    ['kind'],
  );
  readonly abortsUnconfirmed = this.metrics.counter(
    'aborts_unconfirmed_total',
    'Requests ended at the deadline of their abort without the confirmation of a live worker',
  );
  readonly blockedJobs = this.metrics.gauge(
    'blocked_jobs',
    'Jobs whose requests are not claimed since their payloads are near the quota; round.status says what to do',
    ['pool'],
  );
  readonly serversFenced = this.metrics.counter(
    'servers_fenced_total',
    'Servers fenced since what ran on them could not be ended',
  );
  readonly lostEntries = this.metrics.gauge(
    'lost_entries',
    'Requests ever that an index named and that were not there: Redis came back without a part of its keys',
    ['pool'],
  );
  readonly miscounts = this.metrics.gauge(
    'miscounts',
    'Counts ever that were found to be impossible; their jobs are counted anew from the requests',
    ['pool'],
  );
  readonly generations = this.metrics.counter(
    'generations_total',
    'Times that Redis was found to be another one or set back: trainers and workers reconcile',
    ['pool'],
  );
  readonly moves = this.metrics.counter(
    'moves_total',
    'Moves of requests: sent to their holders, or refused when looked at',
    ['outcome'],
  );
  readonly plans = this.metrics.counter(
    'rebalance_plans_total',
    'Plans of the rebalancer by what set them off and what they said',
    ['trigger', 'outcome'],
  );
  readonly planGain = this.metrics.counter(
    'rebalance_gain_seconds_total',
    'Wall time that executed plans were to save',
  );
  readonly planCost = this.metrics.counter(
    'rebalance_cost_seconds_total',
    'Engine time that moves of executed plans were to take',
  );
  readonly awaitingDeletion = this.metrics.gauge(
    'payloads_awaiting_deletion',
    'Payloads that nothing names any more and that wait for their removal',
    ['pool'],
  );
  readonly awaitingDeletionBytes = this.metrics.gauge(
    'payloads_awaiting_deletion_bytes',
    'Bytes of payloads_awaiting_deletion, without those whose bytes are not known yet',
    ['pool'],
  );
  readonly eventsRelayed = this.metrics.counter('events_relayed_total', 'Events published from the outbox');

  constructor(private readonly metrics: Metrics) {}

  /** Sets the gauges of a pool to the sums of its jobs. */
  totals(pool: string, jobs: readonly JobStatus[]): void {
    const requests = new Map<string, number>();
    for (const { requests: counts } of jobs) {
      for (const [state, count] of Object.entries(counts)) requests.set(state, (requests.get(state) ?? 0) + count);
    }
    for (const [state, count] of requests) this.requests.set({ pool, state }, count);
    const show = (gauge: typeof this.groups, state: string, of: (job: JobStatus) => number): void =>
      gauge.set(
        { pool, state },
        jobs.reduce((sum, job) => sum + of(job), 0),
      );
    show(this.groups, 'submitted', (job) => job.submittedGroups);
    show(this.groups, 'trained', (job) => job.trainedGroups);
    show(this.groups, 'failed', (job) => job.failedGroups);
    show(this.groups, 'dropped', (job) => job.droppedGroups);
    show(this.longtail, 'queued', (job) => job.longtail.groups);
    show(this.longtail, 'settling', (job) => job.longtail.settlingGroups);
  }
}
