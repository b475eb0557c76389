import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type AbortAttemptsCommand,
  type AbortRequestsRequest,
  type SaveManyRequest,
  type Epoch,
  isBroomwagonError,
  type LeaseGrant,
  buildSubject,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { engineRequestId } from '@broomwagon/engines';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { liveRows, ServiceBench } from './system/service-bench';

const RUNS = 3 * inject('runsFactor');
const GROUPS = 24;
const SAMPLES = 2;

let bench: ServiceBench;
beforeAll(async () => {
  bench = await ServiceBench.open({ abortDeadlineMs: 30_000 }, RUNS);
}, 60_000);
afterAll(() => bench.close());

/** Steps that may come in any order, and the maximum number of each. */
const STEPS = {
  submit: 6,
  abort: 4,
  sync: 3,
  endSync: 3,
  route: 4,
  release: 2,
  workerDies: 1,
  passes: 4,
} as const;
type Step = keyof typeof STEPS;
const step = fc.oneof(
  ...Object.entries(STEPS).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as Step) })),
);

/** A caller that only routes: it does nothing with its leases but give them back, and obeys aborts. */
class Router {
  readonly identity: { workerId: string; workerEpoch: Epoch };
  readonly held = new Map<string, LeaseGrant>();
  private readonly asking = new Set<Promise<void>>();

  private constructor(workerEpoch: Epoch) {
    this.identity = { workerId: 'router', workerEpoch };
    const subject = workerCommandSubject(bench.pool, 'router', 'abort');
    bench.client.messaging.subscribe(subject, (body) => {
      for (const { leaseId } of (body as unknown as AbortAttemptsCommand).leases ?? []) void this.release(leaseId);
    });
  }

  static async register(): Promise<Router> {
    const registration = { workerId: 'router', registrationId: randomUUID(), ttlMs: 600_000 };
    return new Router((await bench.client.call(bench.pool, 'worker.register', registration)).workerEpoch);
  }

  /** Acquires a lease without waiting for the answer. */
  ask(sessionId: string): void {
    const body = {
      acquireId: randomUUID(),
      requestId: `traj/${sessionId}`,
      sessionId,
      waitMs: 1_500,
      ...this.identity,
    };
    const asked = bench.client.call(bench.pool, 'lb.acquire', body, { timeoutMs: 20_000 }).then(
      (grant) => void this.held.set(grant.leaseId, grant),
      (error: unknown) => expect(isBroomwagonError(error), String(error)).toBe(true),
    );
    this.asking.add(asked);
  }

  async release(leaseId = [...this.held.keys()][0]): Promise<void> {
    if (leaseId === undefined) return;
    this.held.delete(leaseId);
    await bench.client.call(bench.pool, 'lb.release', { leaseId, outcome: 'aborted' });
  }

  async end(): Promise<void> {
    await Promise.all(this.asking);
    for (const leaseId of this.held.keys()) await this.release(leaseId);
  }
}

/** One run: its steps, with the checks after each of them. */
class Run {
  private submitted = 0;
  private syncs = 0;
  private version = 0;
  private open: { syncId: string; version: number } | undefined;
  /** Whether the worker has died. Its requests in the engine then go on until the worker itself notices. */
  private hasDied = false;
  /** Engine ids of every attempt that was reported as running, by request. */
  private readonly attempts = new Map<string, string[]>();

  constructor(
    private readonly router: Router,
    private readonly trainerEpoch: Epoch,
    private readonly decide: (choices: number) => number,
  ) {
    bench.client.messaging.subscribe(buildSubject(bench.pool, 'request.save-many'), (body) => {
      for (const { requestId, attempt } of (body as unknown as SaveManyRequest).saves) {
        const names = this.attempts.get(requestId) ?? [];
        this.attempts.set(requestId, [...names, engineRequestId(requestId, attempt)]);
      }
    });
  }

  async submit(): Promise<void> {
    const indexes = Array.from({ length: 1 + this.decide(3) }, (_, offset) => this.submitted + offset);
    const page = indexes.filter((index) => index < GROUPS);
    if (page.length === 0) return;
    this.submitted += page.length;
    await bench.submitGroups(this.trainerEpoch, page, SAMPLES);
  }

  async abort(): Promise<void> {
    const group = `g${this.decide(GROUPS)}`;
    const selectors: Partial<AbortRequestsRequest>[] = [
      { requestIds: [`job/${group}/${this.decide(SAMPLES)}`, `traj/${this.decide(3)}`] },
      { groupId: group, job: bench.job },
      { sessionId: `${this.decide(3)}` },
      { workerId: this.decide(2) === 0 ? 'w1' : 'router' },
      { serverId: 's1' },
      { requestIds: [`job/${group}/0`] },
    ];
    const body = { abortId: randomUUID(), waitMs: this.decide(2) * 5_000, ...selectors[this.decide(selectors.length)] };
    const { results } = await bench.client.call(bench.pool, 'request.abort', body, { timeoutMs: 20_000 });
    if (this.hasDied) return;
    // Confirmed means stopped on the engine.
    const state = await bench.engineState();
    const live = liveRows(state).map(({ id }) => id);
    for (const { requestId, outcome } of results) {
      if (outcome !== 'aborted') continue;
      const names = this.attempts.get(requestId) ?? [];
      expect(live.filter((id) => names.some((name) => id.includes(name)))).toEqual([]);
    }
  }

  async sync(): Promise<void> {
    if (this.open !== undefined) return;
    const open = { syncId: `sync-${this.syncs++}`, version: this.version + 1 };
    this.open = open;
    const mode = (['abort', 'keep', 'wait'] as const)[this.decide(3)]!;
    const waitMs = mode === 'abort' ? 5_000 : 0;
    const sync = await bench.client.call(bench.pool, 'weights.begin', { ...open, mode, waitMs }, { timeoutMs: 20_000 });
    // The router gives its own leases back after the command; all other requests have been stopped on the engine.
    if (mode === 'abort' && sync.running === 0 && !this.hasDied) {
      expect(liveRows(await bench.engineState())).toEqual([]);
    }
  }

  async endSync(): Promise<void> {
    const { open } = this;
    if (open === undefined) return;
    const commits = this.decide(3) > 0;
    if (commits) await bench.register({ weightVersion: open.version, maxInflight: 6 });
    try {
      await bench.client.call(bench.pool, commits ? 'weights.commit' : 'weights.rollback', { syncId: open.syncId });
    } catch (error) {
      if (isBroomwagonError(error, 'WEIGHTS_NOT_QUIESCED')) return;
      throw error;
    }
    this.open = undefined;
    this.version = commits ? open.version : this.version;
    // The server reports the version of the pool, whatever it had loaded.
    await bench.register({ weightVersion: this.version, maxInflight: 6 });
  }

  async route(): Promise<void> {
    this.router.ask(`${this.decide(3)}`);
  }

  release(): Promise<void> {
    return this.router.release();
  }

  /** Registers another process under the worker's name: everything the worker has expires, and it notices later. */
  async workerDies(): Promise<void> {
    this.hasDied = true;
    await bench.client.call(bench.pool, 'worker.register', { workerId: 'w1', registrationId: randomUUID() });
  }

  async passes(): Promise<void> {
    await delay(1 + this.decide(60));
  }

  async end(): Promise<void> {
    if (this.open !== undefined) await bench.client.call(bench.pool, 'weights.rollback', { syncId: this.open.syncId });
    const all = { abortId: randomUUID(), all: true as const, waitMs: 10_000 };
    await bench.client.call(bench.pool, 'request.abort', all, { timeoutMs: 20_000 });
    await this.router.end();
  }
}

it(
  'leaves engine, leases, requests and waiters agreed, whatever the order of aborts, syncs, ends and deaths',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 30 }),
        fc.infiniteStream(fc.nat()),
        async (steps, stream) => {
          const decide = (choices: number) => (stream.next().value as number) % choices;
          // Half of the responses end by themselves soon.
          await bench.begin(({ script }) => (script.sampleKey % 2 === 0 ? 60 : 4_000), 5);
          await bench.register({ weightVersion: 0, maxInflight: 6 });
          const trainerEpoch = await bench.openRound(GROUPS);
          await bench.startWorker({ workerTtlMs: 3_000, concurrency: 16 });
          const run = new Run(await Router.register(), trainerEpoch, decide);
          await run.submit();
          for (const name of steps) await run[name]();
          await run.end();
          // The worker is alive all the time, and stops attempts that it has lost by itself.
          await expect.poll(() => bench.inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });
          const countEnds = async () => {
            const { submitted, finished, trained, dropped, ...others } = (await bench.counts()).requests;
            return {
              live: Object.values(others).filter((count) => count > 0),
              ended: finished + trained + dropped - submitted,
            };
          };
          // The worker confirms a stop after its engine call has ended.
          await expect.poll(countEnds).toEqual({ live: [], ended: 0 });
          expect((await bench.engineState()).resumeMismatches).toBe(0);
          expect(await bench.findings()).toEqual([]);
          await bench.end();
        },
      ),
      // fast-check does not shrink a failure, because each try would need a pool.
      { numRuns: RUNS, endOnFailure: true },
    );
  },
  600_000 * inject('runsFactor'),
);
