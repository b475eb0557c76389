import { setTimeout as delay } from 'node:timers/promises';
import type { OperationName, ReplyOf, RequestOf } from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import { expect } from 'vitest';
import {
  inEngine,
  inject,
  selectZoo,
  startEngine,
  fetchState,
  type SimulatorState,
} from '../../lab/engine-simulator/src/test-engine';
import type { LengthSource } from '../../lab/engine-simulator/src/tokens/length-source';
import { FAILING, getStanding, STOP_MISSING } from '../../lab/engine-simulator/src/zoo/zoo-sets';
import { DIALECTS, type Disturbance, type Schedule, SERVERS } from './schedule';

const SPEED = 100;
/** Speed of about 3 tokens a second. */
const SLOW_SPEED = 0.1;
const CALL_DEADLINE_MS = 60_000;
const LOOK_MS = 20;
/** More calls than a storm lasts. */
const STORM_CALLS = 1_000_000;
/** A deadline that passes while the trainer loads. */
const SHORT_DEADLINE_MS = 1_000;

/** Faults by which requests stay on an engine when their callers have left. */
const LINGERING: ReadonlySet<string> = new Set(['stall-unnoticed', 'late', 'abort-500', ...STOP_MISSING]);

type Row = SimulatorState['table'][number];

/** A pool of engines that obey stop texts and are disturbed while jobs run in it, and their true weights. */
export class FaultyPool {
  private readonly engines: Awaited<ReturnType<typeof startEngine>>[] = [];
  private starts = 0;
  /** Version of the pool. */
  version = 0;
  /** Highest version that an engine was given, also if the change was rolled back: `keep` makes tokens with it. */
  highestVersion = 0;
  /** Whether a change in mode `keep` ran under requests of the present job. */
  private hasKept = false;
  /** Whether an engine has ended during the present job, and perhaps forgotten its last requests. */
  private hasDied = false;
  /** Whether an engine kept requests of the present job after their callers had left. */
  private hasLingered = false;
  /** Rows of engines that have ended during the present job. */
  private ended: { serverId: string; row: Row }[] = [];

  constructor(
    readonly name: string,
    private readonly client: TypedClient,
    private readonly lengths: LengthSource,
  ) {}

  async open(): Promise<void> {
    for (let index = 0; index < SERVERS; index++) {
      this.engines.push(await this.start(index));
      await this.register(index);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.engines.map((engine) => engine.close()));
  }

  /** Does all that the schedule has for the engines. @param signal aborts when the job has ended */
  async disturb({ disturbances }: Schedule, signal: AbortSignal): Promise<void> {
    const before = await this.received();
    for (const { afterCalls, what } of disturbances.toSorted((one, other) => one.afterCalls - other.afterCalls)) {
      while (!signal.aborted && (await this.received()) - before < afterCalls) await delay(LOOK_MS);
      await this.apply(what);
    }
  }

  /** Forgets the disturbances: all engines serve again, with the weights of the pool. */
  async calm(): Promise<void> {
    for (const [index, engine] of this.engines.entries()) {
      await inject(engine.url, { kind: 'none' });
      await selectZoo(engine.url, { entries: getStanding(DIALECTS[index]!) });
      engine.setSpeed(SPEED);
    }
  }

  /** Checks that engines, leases and waiters of the jobs are gone. */
  async expectAtRest(): Promise<void> {
    for (const { url } of this.engines) await expect.poll(() => inEngine(url)).toBe(0);
    const held = async () => {
      const { leases, waiters } = await this.call('lb.status', {});
      return { leases, waiters };
    };
    await expect.poll(held).toEqual({ leases: 0, waiters: 0 });
    for (const { url } of this.engines) expect((await fetchState(url)).resumeMismatches).toBe(0);
    this.ended = [];
    this.hasKept = this.hasLingered = this.hasDied = false;
  }

  /** Differences between the versions of a part of a sample and the weights that the engine had; empty: none. */
  async findVersionFaults(
    segment: { serverId: string; weightVersion: number; toWeightVersion?: number },
    engineRequestId: string,
  ): Promise<string[]> {
    const { serverId, weightVersion: from, toWeightVersion: to = from } = segment;
    const { table } = await fetchState(this.engines[Number(serverId.slice(1))]!.url);
    const rows = [...table, ...this.ended.filter((one) => one.serverId === serverId).map(({ row }) => row)];
    const spans = rows
      // vLLM adds a prefix for the kind of request, and a number, to an id.
      .filter(({ id }) => id.includes(engineRequestId))
      .map(({ weightVersions }) => weightVersions.map(Number));
    if (spans.length === 0) return this.hasDied ? [] : [`${serverId} has not had this attempt`];
    const [least, most] = [Math.min(...spans.flat()), Math.max(...spans.flat())];
    // A change under running requests marks a part that it may have met, rather once too often.
    const isTrue = this.hasKept
      ? from <= least && (this.hasLingered || to >= most)
      : from === to && spans.some(([first, last]) => from === first && (this.hasLingered || from === last));
    return isTrue ? [] : [`versions ${from} to ${to} of ${serverId}, whose weights were ${JSON.stringify(spans)}`];
  }

  private get urls(): string[] {
    return this.engines.map(({ url }) => url);
  }

  private call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    return this.client.callWithRetry(this.name, operation, body, { deadlineMs: CALL_DEADLINE_MS });
  }

  private async apply(what: Disturbance): Promise<void> {
    if (what.kind === 'weights') return this.changeWeights(what);
    if (what.kind === 'storm') return this.storm(what);
    const engine = this.engines[what.server]!;
    switch (what.kind) {
      case 'calls':
        if (LINGERING.has(what.fault)) this.hasLingered = true;
        return inject(engine.url, { kind: what.fault, count: what.count, afterTokens: what.afterTokens });
      case 'zoo':
        return this.behave(what);
      case 'unhealthy':
        await inject(engine.url, { kind: 'unhealthy' });
        await delay(what.forMs);
        return inject(engine.url, { kind: 'none' });
      case 'slow':
        engine.setSpeed(SLOW_SPEED);
        await delay(what.forMs);
        return engine.setSpeed(SPEED);
      case 'death':
        return this.restart(what.server, what.forMs);
    }
  }

  private async storm({ status, forMs }: Extract<Disturbance, { kind: 'storm' }>): Promise<void> {
    const { urls } = this;
    await Promise.all(urls.map((url) => inject(url, { kind: `error-${status}`, count: STORM_CALLS })));
    await delay(forMs);
    await Promise.all(urls.map((url) => inject(url, { kind: 'none' })));
  }

  private behave({ server, entries, at, count }: Extract<Disturbance, { kind: 'zoo' }>): Promise<void> {
    if (entries.some((name) => LINGERING.has(name))) this.hasLingered = true;
    const all = [...getStanding(DIALECTS[server]!), ...entries];
    const later = all.filter((name) => !FAILING.has(name));
    return selectZoo(this.engines[server]!.url, { entries: all, at, count, later });
  }

  private async restart(index: number, forMs: number): Promise<void> {
    const { url } = this.engines[index]!;
    this.hasDied = true;
    for (const row of (await fetchState(url)).table) this.ended.push({ serverId: `s${index}`, row });
    await this.engines[index]!.close();
    await delay(forMs);
    // The new start has the first weights, so the pool waits for its load.
    await this.register(index);
    this.engines[index] = await this.start(index, Number(new URL(url).port));
    await this.load(index);
    await this.report(index);
  }

  private async changeWeights({ mode, end, late }: Extract<Disturbance, { kind: 'weights' }>): Promise<void> {
    const version = this.version + 1;
    this.highestVersion = Math.max(this.highestVersion, version);
    if (mode === 'keep') this.hasKept = true;
    const all = this.engines.map((_, index) => index);
    const loaded = all.filter((index) => !late.includes(index));
    if (end === 'deadline') {
      const { syncId, running } = await this.begin(version, mode, SHORT_DEADLINE_MS);
      if (mode === 'keep' || running === 0) for (const index of loaded) await this.load(index, version);
      const state = async () => (await this.call('weights.status', { syncId })).sync?.state;
      await expect.poll(state).toBe('rolled-back');
      return this.changeWeights({ kind: 'weights', mode, end: 'commit', late: [] });
    }
    const { syncId } = await this.begin(version, mode, CALL_DEADLINE_MS);
    if (end === 'rollback') {
      await this.call('weights.rollback', { syncId });
      return;
    }
    for (const index of loaded) {
      await this.load(index, version);
      await this.report(index, version);
    }
    await this.call('weights.commit', { syncId });
    this.version = version;
    for (const index of late) {
      await this.load(index);
      await this.report(index);
    }
  }

  /** Begins a change, and waits until nothing runs or its deadline has passed. */
  private async begin(version: number, mode: 'abort' | 'wait' | 'keep', deadlineMs: number) {
    const syncId = `${this.name}-${++this.starts}`;
    for (;;) {
      const body = { syncId, version, mode, deadlineMs, ...(mode !== 'keep' && { waitMs: 500 }) };
      const sync = await this.call('weights.begin', body);
      if (mode === 'keep' || sync.running === 0 || sync.state !== 'begun' || deadlineMs === SHORT_DEADLINE_MS)
        return sync;
    }
  }

  private async load(index: number, version = this.version): Promise<void> {
    const body = JSON.stringify({ new_version: `${version}`, abort_all_requests: false });
    const { ok } = await fetch(`${this.engines[index]!.url}/update_weight_version`, { method: 'POST', body });
    expect(ok).toBe(true);
  }

  private async report(index: number, weightVersion = this.version): Promise<void> {
    await this.call('server.update', { serverId: `s${index}`, weightVersion });
  }

  private start(index: number, port = 0) {
    const zoo = getStanding(DIALECTS[index]!);
    return startEngine(DIALECTS[index]!, { lengths: this.lengths, streamMs: 0, speed: SPEED, port, zoo });
  }

  private async register(index: number): Promise<void> {
    await this.call('server.register', {
      serverId: `s${index}`,
      endpoint: this.engines[index]!.url,
      dialect: DIALECTS[index]!,
      model: 'simulated',
      instanceId: `start-${++this.starts}`,
      maxInflight: 4,
      weightVersion: 0,
    });
  }

  private async received(): Promise<number> {
    const states = await Promise.all(this.urls.map((url) => fetchState(url)));
    return states.reduce((sum, { requests }) => sum + requests.received, 0);
  }
}
