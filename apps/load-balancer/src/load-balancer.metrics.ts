import { Injectable } from '@nestjs/common';
import type { Decision } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { AcquireResult, PoolTotals } from '@broomwagon/state';

/** Metrics of the load-balancer. Gauges are read from Redis periodically, so every replica shows the same values. */
@Injectable()
export class LoadBalancerMetrics {
  readonly acquires = this.metrics.counter(
    'acquires_total',
    'Acquires by outcome: branch of the decision, parked, or error code. NO_SERVER_AVAILABLE, SERVERS_FULL: add ' +
      'servers',
    ['outcome'],
  );
  private readonly waits = this.metrics.histogram(
    'acquire_wait_seconds',
    'Time from the receipt of lb.acquire to its grant, with the time in which no server had room',
    ['pool'],
  );
  private readonly waitsOfPools = new Map<string, ReturnType<(typeof this.waits)['labels']>>();
  private readonly sessions = this.metrics.counter(
    'session_choices_total',
    'Acquires of bound sessions: kept on their server, or broken by the margin; many broken: prefix caches are lost',
    ['outcome'],
  );
  readonly releases = this.metrics.counter(
    'releases_total',
    'Releases by reason; fenced: the epoch of the worker has expired',
    ['reason'],
  );
  readonly transfers = this.metrics.counter(
    'transfers_total',
    'Transfers of leases to another server by outcome: transferred, or error code',
    ['outcome'],
  );
  readonly leasesReaped = this.metrics.counter(
    'leases_reaped_total',
    'Leases of expired worker and server epochs that were returned',
  );
  readonly serversFenced = this.metrics.counter(
    'servers_fenced_total',
    'Server epochs expired by server.fence: engines that did not stop aborted requests',
    ['pool'],
  );
  readonly serversBroken = this.metrics.counter(
    'servers_broken_total',
    'Servers made suspect by the circuit breaker because their calls failed; check the engine',
    ['pool'],
  );
  readonly serversHung = this.metrics.counter(
    'servers_hung_total',
    'Servers made suspect because their calls got no tokens though the engine answers; check the engine',
    ['pool'],
  );
  readonly prefixCacheResets = this.metrics.counter(
    'prefix_cache_resets_total',
    'Resets of prefix caches after new weights by outcome: reset, or failed (server not used; check the engine)',
    ['pool', 'outcome'],
  );
  readonly sessionCloses = this.metrics.counter(
    'session_closes_total',
    'Ended sessions that engines were asked to close, by outcome: closed, or failed (repeated after 30 s)',
    ['pool', 'outcome'],
  );
  readonly unknownWeights = this.metrics.readGauge(
    'servers_with_unknown_weights',
    'Servers that take no leases until their weight version is reported; above 0: see weights.status',
    ['pool'],
  );
  readonly enginesGivenUp = this.metrics.counter(
    'engines_given_up_total',
    'Paused engines that could not be resumed for an hour: they may still be paused; the log names them',
    ['pool'],
  );
  readonly pausesOverdue = this.metrics.counter(
    'pauses_overdue_total',
    'Pauses of pools that ended by their deadline: the trainer or the operator that paused did not resume',
    ['pool'],
  );
  readonly workersExpired = this.metrics.counter(
    'workers_expired_total',
    'Workers that were silent for their time to live',
    ['pool'],
  );
  readonly batchSizes = this.metrics.histogram(
    'acquire_batch_size',
    'Acquires in one transition',
    [],
    [1, 2, 4, 8, 16, 32, 64, 128],
  );
  private readonly rare = [
    this.serversFenced,
    this.serversBroken,
    this.serversHung,
    this.enginesGivenUp,
    this.pausesOverdue,
    this.workersExpired,
  ];
  private readonly drifts = this.metrics.readGauge(
    'engine_drift_leases',
    'Leases minus the requests that engines report: sum, and maximum of one server; permanently above 0: a leak',
    ['pool', 'of'],
  );
  private readonly slowScans = this.metrics.counter(
    'slow_scans_total',
    'Choices that examined more than 128 servers one by one, of all replicas',
    ['pool'],
  );
  private readonly gauges = {
    paused: this.ofPools('pool_paused', '1: the pool grants no lease until pool.resume'),
    leases: this.ofPools('leases', 'Live leases'),
    waiters: this.ofPools('waiters', 'Waiting acquires; growing: the servers are full'),
    sessions: this.ofPools('sessions', 'Sessions bound to a server'),
    sessionsEvicted: this.ofPools(
      'sessions_evicted',
      'Idle sessions forgotten so far, by age or because the limit was reached',
    ),
    pausedSessions: this.ofPools(
      'paused_sessions',
      'Sessions whose context was given up for lack of KV memory, until their next turn is admitted',
    ),
    sessionPauses: this.ofPools('session_pauses', 'Pauses of sessions so far, for lack of KV memory'),
    pausedSessionWaiters: this.ofPools(
      'paused_session_waiters',
      'Turns of paused sessions that wait for KV memory; each waits for at most pausedSessionWaitMs',
    ),
    newSessionWaiters: this.ofPools(
      'new_session_waiters',
      'Acquires of new sessions that wait for KV memory; always above 0: the fleet has less memory than the sessions',
    ),
    workers: this.ofPools('workers', 'Live workers'),
    servers: this.ofPools('servers', 'Registered servers'),
    readyServers: this.ofPools('ready_servers', 'Servers that take leases; 0: no request can run'),
    expiredEpochs: this.ofPools('expired_epochs', 'Worker and server epochs whose leases are being returned'),
  } satisfies Record<Exclude<keyof PoolTotals, 'slowScans' | 'pausedUntilMs' | 'setBackAtMs'>, unknown>;

  constructor(private readonly metrics: Metrics) {}

  /** Observes the time of an acquire. The series of each pool is looked up once, because each acquire comes here. */
  waited(pool: string, waitedMs: number): void {
    let series = this.waitsOfPools.get(pool);
    if (series === undefined) this.waitsOfPools.set(pool, (series = this.waits.labels({ pool })));
    series.observe(waitedMs / 1_000);
  }

  granted({ branch, via }: Decision): void {
    this.acquires.inc({ outcome: branch });
    if ((via ?? branch) === 'sticky-hit') this.sessions.inc({ outcome: 'kept' });
    if ((via ?? branch) === 'sticky-broken') this.sessions.inc({ outcome: 'broken' });
  }

  /**
   * Counts the results of one transition. Sums them by outcome first, because each increment of a counter with labels
   * is expensive.
   */
  answered(results: readonly AcquireResult[]): void {
    const plain = new Map<string, number>();
    for (const result of results) {
      if ('seq' in result && (result.via ?? result.branch).startsWith('sticky')) {
        this.granted(result);
        continue;
      }
      const outcome = 'seq' in result ? result.branch : 'error' in result ? result.error : 'parked';
      plain.set(outcome, (plain.get(outcome) ?? 0) + 1);
    }
    for (const [outcome, count] of plain) this.acquires.inc({ outcome }, count);
  }

  releasedAll(replies: readonly { reason: string }[]): void {
    const counts = new Map<string, number>();
    for (const { reason } of replies) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    for (const [reason, count] of counts) this.releases.inc({ reason }, count);
  }

  drift(pool: string, drifts: readonly number[]): void {
    const greatest = drifts.reduce((most, drift) => Math.max(most, drift), 0);
    this.drifts.set(
      { pool, of: 'sum' },
      drifts.reduce((sum, drift) => sum + drift, 0),
    );
    this.drifts.set({ pool, of: 'greatest' }, greatest);
  }

  totals(pool: string, totals: PoolTotals): void {
    // A series must begin with 0, because Prometheus does not see the increase of a series that begins with 1.
    for (const counter of this.rare) counter.inc({ pool }, 0);
    if (!this.waitsOfPools.has(pool)) {
      this.waits.zero({ pool });
      this.waitsOfPools.set(pool, this.waits.labels({ pool }));
    }
    this.prefixCacheResets.inc({ pool, outcome: 'failed' }, 0);
    for (const [name, gauge] of Object.entries(this.gauges))
      gauge.set({ pool }, Number(totals[name as keyof PoolTotals]));
    // Redis counts slow scans, since many transitions choose servers.
    this.slowScans.remove({ pool });
    this.slowScans.inc({ pool }, totals.slowScans);
  }

  private ofPools(name: string, help: string) {
    return this.metrics.readGauge(name, help, ['pool']);
  }
}
