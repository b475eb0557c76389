import { Injectable } from '@nestjs/common';
import { decodeId, SERVER_STATES, type PoolName, type ServerStatus } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import { LoadBalancerConfig } from '../load-balancer.config';

/** Maximum servers of a pool that are named in labels: a larger outage has one cause for all. */
const MAX_NAMED = 20;
/** Age after which a load report says nothing about the present, milliseconds. */
const MAX_REPORT_AGE_MS = 30_000;
/** States in which a server takes no new leases although nobody has taken it out of use on purpose. */
const SICK: ReadonlySet<string> = new Set<ServerStatus['state']>(['pending', 'suspect', 'failed', 'quarantined']);

/** Counts of the servers of one pool, over all pages of one list. */
export class ServerCounts {
  readonly states = new Map<string, number>(SERVER_STATES.map((state) => [state, 0]));
  /** Problem of each sick server, by its id. */
  readonly sick = new Map<string, string>();
  /** Use of the KV cache of each server that reports it, 0 to 1. */
  readonly kvUses: number[] = [];
  idle = 0;
  running = 0;
  waiting = 0;

  add(servers: readonly ServerStatus[]): void {
    for (const { serverId, state, inflight, hung, withheld, load } of servers) {
      this.states.set(state, this.states.get(state)! + 1);
      if (state === 'ready' && inflight === 0) this.idle += 1;
      const problem = hung ? 'hung' : withheld ? 'withheld' : SICK.has(state) ? state : undefined;
      if (problem !== undefined) this.sick.set(serverId, problem);
      if (load === undefined || load.ageMs > MAX_REPORT_AGE_MS) continue;
      this.running += load.running;
      this.waiting += load.waiting;
      if (load.kvUse !== undefined) this.kvUses.push(load.kvUse);
    }
  }
}

/** Gauges of the servers of each pool, read from Redis periodically, so that every replica shows the same values. */
@Injectable()
export class ServerGauges {
  private readonly states;
  private readonly problems;
  private readonly idle;
  private readonly requests;
  private readonly kv;
  /** Labels of the named servers of each pool. */
  private readonly named = new Map<PoolName, Record<'pool' | 'server' | 'state', string>[]>();

  constructor(metrics: Metrics, { probeIntervalMs }: LoadBalancerConfig) {
    const maxAgeMs = Math.max(30_000, 5 * probeIntervalMs);
    const gauge = <Label extends string>(name: string, help: string, labels: Label[]) =>
      metrics.readGauge(name, help, labels, maxAgeMs);
    this.states = gauge('servers_by_state', 'Servers by state', ['pool', 'state']);
    this.problems = gauge(
      'server_problem',
      `Always 1: a server takes no requests though nobody has taken it out of use; at most ${MAX_NAMED} in a pool`,
      ['pool', 'server', 'state'],
    );
    this.idle = gauge('idle_servers', 'Ready servers without a lease; during a round: capacity that waits', ['pool']);
    this.requests = gauge(
      'engine_requests',
      'Requests that engines report, running or waiting; many waiting: limits of servers are too high',
      ['pool', 'state'],
    );
    this.kv = gauge('engine_kv_ratio', 'Use of the KV caches that engines report: mean, and maximum of one server', [
      'pool',
      'of',
    ]);
  }

  show(pool: PoolName, counts: ServerCounts): void {
    for (const [state, count] of counts.states) this.states.set({ pool, state }, count);
    this.idle.set({ pool }, counts.idle);
    this.requests.set({ pool, state: 'running' }, counts.running);
    this.requests.set({ pool, state: 'waiting' }, counts.waiting);
    const { kvUses } = counts;
    if (kvUses.length > 0) {
      this.kv.set({ pool, of: 'mean' }, kvUses.reduce((sum, use) => sum + use, 0) / kvUses.length);
      this.kv.set({ pool, of: 'greatest' }, Math.max(...kvUses));
    }
    this.showSick(pool, counts.sick);
  }

  private showSick(pool: PoolName, sick: ReadonlyMap<string, string>): void {
    for (const labels of this.named.get(pool) ?? []) this.problems.remove(labels);
    // The order by id keeps the same servers named while many are sick.
    const named = [...sick].toSorted(([one], [other]) => (one < other ? -1 : 1)).slice(0, MAX_NAMED);
    const labels = named.map(([server, state]) => ({ pool, server: decodeId(server), state }));
    this.named.set(pool, labels);
    for (const one of labels) this.problems.set(one, 1);
  }
}
