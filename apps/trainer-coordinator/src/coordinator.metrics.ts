import { Injectable } from '@nestjs/common';
import type { JobStatus } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';

/** What the coordinator counts. Gauges are read from the counts periodically, so every replica shows the same. */
@Injectable()
export class CoordinatorMetrics {
  private readonly requests;
  private readonly groups;
  private readonly longtail;
  private readonly claims;
  private readonly outcomes;
  private readonly sweeps;
  private readonly events;
  private readonly awaiting;
  private readonly awaitingBytes;
  private readonly overdue;
  private readonly lost;
  private readonly impossible;
  private readonly blocked;
  private readonly generations;
  private readonly fences;
  private readonly moves;
  private readonly plans;
  private readonly planGain;
  private readonly planCost;

  constructor(metrics: Metrics) {
    this.requests = metrics.gauge('requests', 'Requests of all jobs of a pool by state; from the counts', [
      'pool',
      'state',
    ]);
    this.groups = metrics.gauge('groups', 'Groups of all jobs of a pool: submitted, trained, failed, dropped', [
      'pool',
      'state',
    ]);
    this.longtail = metrics.gauge('longtail_groups', 'Groups in the long-tail queues or on their way there', [
      'pool',
      'state',
    ]);
    this.claims = metrics.counter(
      'claims_total',
      'Answers of claims by outcome: given, empty, parked, granted, expired',
      ['outcome'],
    );
    this.outcomes = metrics.counter('attempts_total', 'Ends of attempts by what became of the request', ['outcome']);
    this.sweeps = metrics.counter(
      'sweep_pages_total',
      'Pages of the sweep by kind; cut without end: workers do not confirm',
      ['kind'],
    );
    this.overdue = metrics.counter(
      'aborts_unconfirmed_total',
      'Requests ended at the deadline of their abort without the confirmation of a live worker',
    );
    this.blocked = metrics.gauge(
      'blocked_jobs',
      'Jobs whose requests are not claimed since their payloads are near the quota; round.status says what to do',
      ['pool'],
    );
    this.fences = metrics.counter('servers_fenced_total', 'Servers fenced since what ran on them could not be ended');
    this.lost = metrics.gauge(
      'lost_entries',
      'Requests ever that an index named and that were not there: Redis came back without a part of its keys',
      ['pool'],
    );
    this.impossible = metrics.gauge(
      'miscounts',
      'Counts ever that were found to be impossible; their jobs are counted anew from the requests',
      ['pool'],
    );
    this.generations = metrics.counter(
      'generations_total',
      'Times that Redis was found to be another one or set back: trainers and workers reconcile',
      ['pool'],
    );
    this.moves = metrics.counter('moves_total', 'Moves of requests: sent to their holders, or refused when looked at', [
      'outcome',
    ]);
    this.plans = metrics.counter(
      'rebalance_plans_total',
      'Plans of the rebalancer by what set them off and what they said',
      ['trigger', 'outcome'],
    );
    this.planGain = metrics.counter('rebalance_gain_seconds_total', 'Wall time that executed plans were to save');
    this.planCost = metrics.counter(
      'rebalance_cost_seconds_total',
      'Engine time that moves of executed plans were to take',
    );
    this.awaiting = metrics.gauge(
      'payloads_awaiting_deletion',
      'Payloads that nothing names any more and that wait for their removal',
      ['pool'],
    );
    this.awaitingBytes = metrics.gauge(
      'payloads_awaiting_deletion_bytes',
      'Bytes of payloads_awaiting_deletion, without those whose bytes are not known yet',
      ['pool'],
    );
    this.events = metrics.counter('events_relayed_total', 'Events published from the outbox');
  }

  claimed(outcome: 'given' | 'empty' | 'parked' | 'granted' | 'expired', count = 1): void {
    this.claims.inc({ outcome }, count);
  }

  attemptEnded(outcome: string, count = 1): void {
    this.outcomes.inc({ outcome }, count);
  }

  swept(
    kind:
      | 'move'
      | 'take'
      | 'cut'
      | 'delete'
      | 'give-back'
      | 'leave'
      | 'checkpoint'
      | 'restore'
      | 'unlink'
      | 'fold'
      | 'expired'
      | 'abort'
      | 'forget'
      | 'weights',
  ): void {
    this.sweeps.inc({ kind });
  }

  movesSent(sent: number, refused: number): void {
    this.moves.inc({ outcome: 'sent' }, sent);
    this.moves.inc({ outcome: 'refused' }, refused);
  }

  /** @param outcome the reason of a plan that moves nothing, `dry-run` or `executed` */
  planned(trigger: string, outcome: string): void {
    this.plans.inc({ trigger, outcome });
  }

  planExecuted({ gainSeconds, costSeconds }: { gainSeconds: number; costSeconds: number }): void {
    this.planGain.inc(gainSeconds);
    this.planCost.inc(costSeconds);
  }

  abortsOverdue(count: number): void {
    this.overdue.inc(count);
  }

  jobsBlocked(pool: string, count: number): void {
    this.blocked.set({ pool }, count);
  }

  serverFenced(): void {
    this.fences.inc();
  }

  /** @param count of the pool, ever */
  lostEntries(pool: string, count: number): void {
    this.lost.set({ pool }, count);
  }

  /** @param count of the pool, ever */
  miscounts(pool: string, count: number): void {
    this.impossible.set({ pool }, count);
  }

  /** The generation of the pool was renewed. */
  renewed(pool: string): void {
    this.generations.inc({ pool });
  }

  awaitingDeletion(pool: string, payloads: number, bytes: number): void {
    this.awaiting.set({ pool }, payloads);
    this.awaitingBytes.set({ pool }, bytes);
  }

  eventsRelayed(count: number): void {
    this.events.inc(count);
  }

  /** Sets the gauges of a pool to the sums of its jobs. */
  totals(pool: string, jobs: readonly JobStatus[]): void {
    const requests = new Map<string, number>();
    const sum = (of: (job: JobStatus) => number): number => jobs.reduce((total, job) => total + of(job), 0);
    for (const { requests: counts } of jobs) {
      for (const [state, count] of Object.entries(counts)) requests.set(state, (requests.get(state) ?? 0) + count);
    }
    for (const [state, count] of requests) this.requests.set({ pool, state }, count);
    this.groups.set(
      { pool, state: 'submitted' },
      sum((job) => job.submittedGroups),
    );
    this.groups.set(
      { pool, state: 'trained' },
      sum((job) => job.trainedGroups),
    );
    this.groups.set(
      { pool, state: 'failed' },
      sum((job) => job.failedGroups),
    );
    this.groups.set(
      { pool, state: 'dropped' },
      sum((job) => job.droppedGroups),
    );
    this.longtail.set(
      { pool, state: 'queued' },
      sum((job) => job.longtail.groups),
    );
    this.longtail.set(
      { pool, state: 'settling' },
      sum((job) => job.longtail.settlingGroups),
    );
  }
}
