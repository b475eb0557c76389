import { LIMITS, MAX_LABELS } from '@broomwagon/contracts';
import {
  InspectionStore,
  LeaseStore,
  PoolStore,
  ServerStore,
  SessionStore,
  WaiterStore,
  WeightStore,
  WorkerStore,
  type AcquireEntry,
} from '@broomwagon/state';
import { LeaseBounds } from '../../../../libs/state/src/leases/lease.store';
import { transition } from '../../../../libs/state/src/library/function-runner';
import type { BenchWorker } from '../generator/jobs';
import type { PoolState } from '../stage';
import type { TimedRunner } from './timed-runner';

const PAGE: number = LIMITS.page;
/** Number of acquires in one call; the store splits them into smaller pages. */
const BATCH = PAGE;
const LONG_MS = 86_400_000;
const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const serverIds = range(PAGE).map((index) => `server-${index}`);
const SERVER = {
  endpoint: 'http://10.0.0.1:8000',
  dialect: 'vllm',
  instanceId: 'bench',
  maxInflight: 1_000_000,
  weight: 1,
  weightVersion: 0,
} as const;
const labels = Object.fromEntries(range(MAX_LABELS).map((index) => [`label-${index}`, 'v'.repeat(63)]));

/** Measures a pool with very many servers, leases and sessions. */
export class RoutingCases {
  private readonly leases;
  private readonly servers;
  private readonly pools;
  private readonly sessions;
  private readonly parked;
  private readonly epochs;
  private readonly weights;
  private readonly inspections;
  private workers: BenchWorker[] = [];
  private acquires = 0;
  private repeat = 0;

  constructor(
    private readonly runner: TimedRunner,
    private readonly state: PoolState,
    private readonly pool: string,
  ) {
    this.leases = new LeaseStore(runner, { ...new LeaseBounds(), rememberMs: 1 });
    this.servers = new ServerStore(runner);
    this.pools = new PoolStore(runner);
    this.sessions = new SessionStore(runner);
    this.parked = new WaiterStore(runner);
    this.epochs = new WorkerStore(runner);
    this.weights = new WeightStore(runner);
    this.inspections = new InspectionStore(runner);
  }

  async fill(servers: number, leases: number): Promise<void> {
    const { pool } = this;
    this.workers = await this.state.fill(pool, servers);
    await this.state.hold(pool, this.workers, leases, true);
    // Only the first page has labels, which choices and their snapshots read.
    for (const serverId of serverIds) await this.servers.update(pool, { serverId, labels });
    // These engines are paused while weights change; they take no leases yet.
    for (const index of range(PAGE)) {
      await this.servers.register(pool, {
        ...SERVER,
        serverId: `engine-${index}`,
        endpoint: `http://10.1.0.${index}:8000`,
        capabilities: { pauseModes: ['keep'] },
      });
    }
  }

  async run(): Promise<void> {
    const { runner } = this;
    // The last case, the end of a worker, expires the leases of this worker.
    const worker = this.workers[this.repeat++]!;
    const measure = (what: string, work: () => Promise<void>) => runner.measure(`large pool, ${what}`, work);
    for (const [what, request, count] of this.requests()) {
      await measure(`acquires ${what}`, () => this.acquireMany(worker, request, count));
    }
    await this.pools.configure(this.pool, { decisionSampleEvery: 1 });
    await measure('acquires that are all sampled', () => this.acquireMany(worker, { excludeServers: ['none'] }));
    await this.pools.configure(this.pool, {}, ['decisionSampleEvery']);
    await measure('upkeep', () => this.upkeep(worker));
    await measure('lists', () => this.lists(worker));
    await measure('servers', () => this.changeServers());
    await measure('settings', () => this.changeSettings());
    await measure('waiters', () => this.waiters(worker));
    await measure('new weights', () => this.changeWeights());
    await measure('a worker that ends', () => this.endWorker(worker));
  }

  private requests(): [string, Partial<AcquireEntry>, number?][] {
    return [
      ['without constraints', {}],
      ['of a session', { sessionId: 'one' }],
      ['with a version', { minWeightVersion: 0 }],
      ['with 64 exclusions', { excludeServers: serverIds.slice(0, LIMITS.excludedServers) }],
      ['with 16 labels', { labels }],
      ['with labels that no server has', { labels: { none: 'none' } }],
      ['of one group', { groupId: 'group' }],
      [
        'explained',
        { explain: true, excludeServers: serverIds.slice(0, LIMITS.excludedServers) },
        LIMITS.explainsPerCall,
      ],
    ];
  }

  private async acquireMany(worker: BenchWorker, request: Partial<AcquireEntry>, count = BATCH): Promise<void> {
    const items = this.entries(worker, request, count);
    const { results } = await this.leases.acquire(this.pool, items);
    const [granted] = results;
    if (granted !== undefined && 'seq' in granted) {
      const { acquireId } = items[0]!;
      const transfer = { transferId: `t-${acquireId}`, acquireId, ...worker, targetServerId: 'server-200' };
      await this.leases.transfer(this.pool, transfer).catch(() => undefined);
    }
    await this.leases.release(
      this.pool,
      items.map(({ acquireId }) => ({ acquireId })),
    );
  }

  private entries(worker: BenchWorker, request: Partial<AcquireEntry>, count: number): AcquireEntry[] {
    return range(count).map(() => ({
      acquireId: `bench-${this.acquires++}`,
      requestId: `job/group-${this.acquires}/0`,
      ...worker,
      ...request,
    }));
  }

  private async upkeep(worker: BenchWorker): Promise<void> {
    const { pool, leases, parked, epochs, sessions, servers } = this;
    await leases.sweep(pool);
    await parked.grant(pool);
    await epochs.expire(pool, { gapMs: 10_000 });
    await sessions.evict(pool, { idleMs: 1 });
    await epochs.heartbeat(pool, worker);
    await servers.recordProbes(pool, serverIds);
    await servers.review(pool, { suspectAfterMs: LONG_MS, failedAfterMs: LONG_MS });
    await servers.warm(pool);
    await servers.endDrains(pool);
    await this.runner.run(transition<object, object>('pools/activity'), pool, {});
    const { servers: listed } = await servers.list(pool);
    const known = listed.map(({ serverId, epoch }) => ({ serverId, epoch }));
    await servers.reportLoads(pool, {
      reports: known.map((server) => ({ ...server, running: 1, waiting: 1, kvUse: 0.5, uncachedTokens: 100 })),
    });
    await servers.limit(pool, { limits: known.map((server) => ({ ...server, from: 1_000_000, to: 999_999 })) });
  }

  private async lists(worker: BenchWorker): Promise<void> {
    const { pool, pools, servers, epochs, inspections } = this;
    await pools.status(pool);
    let pages = 0;
    for await (const _ of servers.pages('list', pool)) if (++pages === 4) break;
    await pools.history(pool);
    await inspections.workers(pool);
    await inspections.sessions(pool, {});
    for (const selector of [{}, { serverId: 'server-0' }, { workerId: worker.workerId }]) {
      await inspections.leases(pool, selector);
    }
    for (const kind of ['leases', 'attempts'] as const) await epochs.sync(pool, { ...worker, kind });
    for (const full of [false, true]) await inspections.decisions(pool, { full });
  }

  private async changeServers(): Promise<void> {
    const { pool, servers } = this;
    const serverId = 'server-300';
    const { epoch } = (await servers.update(pool, { serverId, maxInflight: 1_000_000 })) as { epoch: string };
    let pages = 0;
    for await (const _ of servers.pages('reconcile', pool, { serverId })) if (++pages === 2) break;
    for (const cordoned of [true, false]) await servers.cordon(pool, { serverId, cordoned });
    await servers.drain(pool, { serverId, deadlineMs: LONG_MS });
    await servers.cordon(pool, { serverId, cordoned: false });
    await servers.fence(pool, { serverId, epoch, reason: 'bench' });
    await servers.register(pool, { ...SERVER, serverId, probe: false, instanceId: `again-${this.repeat}` });
  }

  private async changeSettings(): Promise<void> {
    const { pool, servers, pools, sessions } = this;
    const { version } = await pools.configure(pool, { policy: 'least-tokens' });
    await servers.rescore(pool, {});
    await pools.finish(pool, version);
    await pools.configure(pool, {}, ['policy']);
    await pools.settings(pool);
    await sessions.finishJob(pool, 'none');
    await sessions.clear(pool);
    await sessions.finish(pool, { sessionId: 'one' });
  }

  /** Parks more waiters than one script answers, each with constraints. */
  private async waiters(worker: BenchWorker): Promise<void> {
    const { pool, pools, leases, parked } = this;
    const request = {
      waitMs: LIMITS.waitMs,
      replyTo: '_INBOX.bench',
      excludeServers: serverIds.slice(0, LIMITS.excludedServers),
    };
    await pools.pause(pool, { paused: true });
    const early = this.entries(worker, request, 2 * PAGE);
    await leases.acquire(pool, early);
    await leases.cancel(pool, { ...worker, acquireId: early[0]!.acquireId });
    await pools.pause(pool, { paused: false });
    while ((await parked.grant(pool)).more);
    const late = this.entries(worker, { ...request, waitMs: 1 }, PAGE);
    await pools.pause(pool, { paused: true });
    await leases.acquire(pool, late);
    await parked.expire(pool);
    await pools.pause(pool, { paused: false });
    await leases.release(
      pool,
      early.map(({ acquireId }) => ({ acquireId })),
    );
  }

  private async changeWeights(): Promise<void> {
    const { pool, weights } = this;
    for (const mode of ['abort', 'keep'] as const) {
      const syncId = `sync-${mode}-${this.repeat}`;
      await weights.begin(pool, { syncId, version: 1, mode, deadlineMs: 600_000 });
      await weights.stop(pool, { syncId, fenceAfterMs: LONG_MS });
      for await (const page of weights.pages('engineSteps', pool)) {
        for (const step of page.steps) await weights.engineTold(pool, step, 1_000);
        if (page.steps[0]) await weights.engineHeld(pool, page.steps[0]);
      }
      await weights.status(pool, { syncId, cursor: '0' });
      await weights.end(pool, { syncId, outcome: 'rolled-back', reason: 'asked' });
      await weights.engineResumes(pool, {});
    }
    // One page of engines whose entries Redis may have lost.
    await weights.engineSteps(pool, {});
    const { steps } = await weights.engineResumes(pool, {});
    for (const step of steps) await weights.engineTold(pool, step, 0);
  }

  private async endWorker(worker: BenchWorker): Promise<void> {
    const { pool, leases, epochs, servers } = this;
    await epochs.deregister(pool, worker);
    for (let page = 0; page < 8; page++) await leases.sweep(pool);
    const removed = `server-${400 + this.repeat}`;
    await servers.remove(pool, { serverId: removed });
    await leases.sweep(pool);
    await epochs.register(pool, { ...worker, registrationId: `again-${this.repeat}`, ttlMs: LONG_MS });
  }
}
