import { Injectable } from '@nestjs/common';
import type { JobStatus, MoveTimes } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';

/** Metrics of the coordinator. Gauges are read from the counts periodically, so every replica shows the same values. */
@Injectable()
export class CoordinatorMetrics {
  private readonly requests = this.metrics.readGauge('requests', 'Requests of all jobs of a pool by state', [
    'pool',
    'state',
  ]);
  private readonly groups = this.metrics.readGauge(
    'groups',
    'Groups of all jobs of a pool: submitted, trained, failed, dropped',
    ['pool', 'state'],
  );
  private readonly longtail = this.metrics.readGauge(
    'longtail_groups',
    'Groups in the long-tail queues, or cut and not confirmed yet',
    ['pool', 'state'],
  );
  readonly claims = this.metrics.counter(
    'claims_total',
    'Answers of claims by outcome: given, empty, parked, granted, expired',
    ['pool', 'outcome'],
  );
  readonly attempts = this.metrics.counter('attempts_total', 'Ended attempts by the next state of the request', [
    'outcome',
  ]);
  readonly sweepPages = this.metrics.counter(
    'sweep_pages_total',
    'Pages of the sweeper by kind; cut keeps growing: workers do not confirm',
    ['kind'],
  );
  readonly abortsUnconfirmed = this.metrics.counter(
    'aborts_unconfirmed_total',
    'Requests ended at the deadline of their abort without the confirmation of a live worker',
    ['pool'],
  );
  readonly blockedJobs = this.metrics.gauge(
    'blocked_jobs',
    'Jobs whose requests are not claimed because their payloads are near the quota; round.status says what to do',
    ['pool'],
  );
  readonly serversFenced = this.metrics.counter(
    'servers_fenced_total',
    'Servers fenced because their requests could not be stopped',
    ['pool'],
  );
  readonly lostEntries = this.metrics.gauge(
    'lost_entries',
    'Requests so far that an index named and that were missing: Redis came back without some of its keys',
    ['pool'],
  );
  readonly miscounts = this.metrics.gauge(
    'miscounts',
    'Impossible counts found so far; their jobs are recounted from the requests',
    ['pool'],
  );
  readonly generations = this.metrics.counter(
    'generations_total',
    'Restarts and losses of Redis that were detected; trainers and workers reconcile',
    ['pool'],
  );
  readonly moves = this.metrics.counter('moves_total', 'Moves of requests: sent to their workers, or refused', [
    'outcome',
  ]);
  private readonly movePhases = this.metrics.histogram(
    'move_phase_seconds',
    'Times of moves of running requests by phase: stop, place, resume, first-token',
    ['phase'],
  );
  readonly plans = this.metrics.counter('rebalance_plans_total', 'Plans of the rebalancer by trigger and outcome', [
    'trigger',
    'outcome',
  ]);
  readonly planGain = this.metrics.counter(
    'rebalance_gain_seconds_total',
    'Wall time that executed plans are expected to save',
  );
  readonly planCost = this.metrics.counter(
    'rebalance_cost_seconds_total',
    'Engine time that the moves of executed plans are expected to take',
  );
  readonly awaitingDeletion = this.metrics.gauge(
    'payloads_awaiting_deletion',
    'Unused payloads that wait for their removal',
    ['pool'],
  );
  readonly awaitingDeletionBytes = this.metrics.gauge(
    'payloads_awaiting_deletion_bytes',
    'Bytes of payloads_awaiting_deletion, without payloads of unknown size',
    ['pool'],
  );
  readonly lostGroups = this.metrics.counter(
    'lost_groups_total',
    'Groups that ended without training, by outcome (failed, dropped) and reason; counted as events are relayed',
    ['pool', 'outcome', 'reason'],
  );
  readonly eventsRelayed = this.metrics.counter('events_relayed_total', 'Events published from the outbox');

  constructor(private readonly metrics: Metrics) {}

  /** Observes the phases of a move; ignores a move without times. */
  observeMove(times: MoveTimes | undefined): void {
    if (times === undefined) return;
    const { stopMs, placeMs, resumeMs, firstTokenMs } = times;
    const phases = { stop: stopMs, place: placeMs, resume: resumeMs, 'first-token': firstTokenMs };
    for (const [phase, ms] of Object.entries(phases)) this.movePhases.observe({ phase }, ms / 1_000);
  }

  /** Sets the gauges of a pool to the sums of its jobs. */
  totals(pool: string, jobs: readonly JobStatus[]): void {
    // A series must begin with 0, because Prometheus does not see the increase of a series that begins with 1.
    for (const counter of [this.abortsUnconfirmed, this.serversFenced]) counter.inc({ pool }, 0);
    this.claims.inc({ pool, outcome: 'granted' }, 0);
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
