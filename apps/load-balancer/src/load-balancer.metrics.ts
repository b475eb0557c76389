import { Injectable } from '@nestjs/common';
import type { Decision } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { AcquireResult, PoolTotals } from '@broomwagon/state';

/** What the load-balancer counts. Gauges are read from Redis periodically, so every replica shows the same. */
@Injectable()
export class LoadBalancerMetrics {
  private readonly acquires;
  private readonly sessions;
  private readonly releases;
  private readonly transfers;
  private readonly reaped;
  private readonly fenced;
  private readonly broken;
  private readonly expired;
  private readonly batches;
  private readonly slowScans;
  private readonly gauges;
  private readonly drifts;
  private readonly prefixCaches;
  private readonly givenUp;

  constructor(metrics: Metrics) {
    this.acquires = metrics.counter(
      'acquires_total',
      'Acquires by outcome: branch of the decision, parked, or error code; NO_SERVER_AVAILABLE, SERVERS_FULL: add servers',
      ['outcome'],
    );
    this.sessions = metrics.counter(
      'session_choices_total',
      'Acquires of bound sessions: kept on their server, or broken by the margin; many broken: prefixes are lost',
      ['outcome'],
    );
    this.releases = metrics.counter('releases_total', 'Releases by reason; fenced: a worker was taken for dead', [
      'reason',
    ]);
    this.transfers = metrics.counter(
      'transfers_total',
      'Leases to be moved to another server, by outcome: transferred, or error code',
      ['outcome'],
    );
    this.reaped = metrics.counter('leases_reaped_total', 'Leases of void worker and server epochs that were returned');
    this.fenced = metrics.counter(
      'servers_fenced_total',
      'Epochs taken from servers by name: engines that did not do what they were told',
    );
    this.broken = metrics.counter(
      'servers_broken_total',
      'Servers made suspect by the breaker: their calls failed, look at the engine',
    );
    this.prefixCaches = metrics.counter(
      'prefix_cache_resets_total',
      'Prefix caches of engines that got new weights, by outcome: reset, or failed (the server is not used: look at the engine)',
      ['outcome'],
    );
    this.givenUp = metrics.counter(
      'engines_given_up_total',
      'Paused engines that could not be told to go on for an hour: they may still stand still, the log names them',
    );
    this.expired = metrics.counter('workers_expired_total', 'Workers that were not heard of for their time to live');
    this.batches = metrics.histogram(
      'acquire_batch_size',
      'Acquires in one script call',
      [],
      [1, 2, 4, 8, 16, 32, 64, 128],
    );
    this.drifts = metrics.gauge(
      'engine_drift_leases',
      'Leases less the requests their engines report: the sum, and the greatest of one server; lasting: a leak',
      ['pool', 'of'],
    );
    this.slowScans = metrics.counter(
      'slow_scans_total',
      'Choices that looked at more than 128 servers one by one, of all replicas',
      ['pool'],
    );
    const gauge = (name: string, help: string) => metrics.gauge(name, help, ['pool']);
    this.gauges = {
      leases: gauge('leases', 'Live leases'),
      waiters: gauge('waiters', 'Parked acquires; growing: the servers are full'),
      sessions: gauge('sessions', 'Sessions bound to a server'),
      sessionsEvicted: gauge('sessions_evicted', 'Idle sessions forgotten so far, by age or for want of place'),
      workers: gauge('workers', 'Live workers'),
      servers: gauge('servers', 'Registered servers'),
      readyServers: gauge('ready_servers', 'Servers that take leases; 0: nothing can be generated'),
      expiredEpochs: gauge('expired_epochs', 'Worker and server epochs whose leases are being returned'),
    } satisfies Record<Exclude<keyof PoolTotals, 'slowScans'>, unknown>;
  }

  acquired(outcome: string): void {
    this.acquires.inc({ outcome });
  }

  granted({ branch, via }: Decision): void {
    this.acquired(branch);
    if ((via ?? branch) === 'sticky-hit') this.sessions.inc({ outcome: 'kept' });
    if ((via ?? branch) === 'sticky-broken') this.sessions.inc({ outcome: 'broken' });
  }

  /** As {@link granted} and {@link acquired} for each, counted first: a labelled counter is dearer than it looks. */
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

  released(reason: string, count = 1): void {
    this.releases.inc({ reason }, count);
  }

  releasedAll(replies: readonly { reason: string }[]): void {
    const counts = new Map<string, number>();
    for (const { reason } of replies) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    for (const [reason, count] of counts) this.released(reason, count);
  }

  transferred(outcome: string): void {
    this.transfers.inc({ outcome });
  }

  batch(size: number): void {
    this.batches.observe(size);
  }

  leasesReaped(count: number): void {
    this.reaped.inc(count);
  }

  serverFenced(): void {
    this.fenced.inc();
  }

  serverBroken(): void {
    this.broken.inc();
  }

  prefixCacheReset(outcome: 'reset' | 'failed'): void {
    this.prefixCaches.inc({ outcome });
  }

  engineGivenUp(): void {
    this.givenUp.inc();
  }

  workersExpired(count: number): void {
    this.expired.inc(count);
  }

  drift(pool: string, { sum, greatest }: { sum: number; greatest: number }): void {
    this.drifts.set({ pool, of: 'sum' }, sum);
    this.drifts.set({ pool, of: 'greatest' }, greatest);
  }

  totals(pool: string, totals: PoolTotals): void {
    for (const [name, gauge] of Object.entries(this.gauges)) gauge.set({ pool }, totals[name as keyof PoolTotals]);
    // Counted in Redis, since scripts of all kinds choose.
    this.slowScans.remove({ pool });
    this.slowScans.inc({ pool }, totals.slowScans);
  }
}
