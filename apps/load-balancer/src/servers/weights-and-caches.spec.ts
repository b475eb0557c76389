import fc from 'fast-check';
import type { WeightSyncMode } from '@broomwagon/contracts';
import { createEngineAdapter } from '@broomwagon/engines';
import { connectRedis, FunctionRunner, WeightStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { startEngine, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

/** One change of weights, as a trainer makes and reports it. */
interface Change {
  /** Mode of the `weights.begin` before the change; undefined: no `weights.begin` precedes the change. */
  mode?: WeightSyncMode;
  /** Difference of the new and the old version of the pool; 0: other weights under the same version. */
  step: 0 | 1;
  end: 'committed' | 'rolled-back' | 'deadline';
  /** Requests run on both engines during the change, where the mode allows it. */
  isBusy: boolean;
  /** The versions of the engines are reported before the end of the change, else only after a deadline. */
  isReported: boolean;
}

const DIALECTS = ['vllm', 'sglang'] as const; // the simulated SGLang is of a version without salts
const LOADS = { vllm: '/areal_update_weights', sglang: '/update_weights_from_disk' };
const PROMPT = 'What is the sum of one and two?';
const redis = connectRedis({ url: testRedisUrl() });
let lb: LoadBalancers;
let engines: Record<(typeof DIALECTS)[number], Awaited<ReturnType<typeof startEngine>>>;
let weights: WeightStore;

beforeAll(async () => {
  lb = await openLoadBalancers(1);
  engines = { vllm: await startEngine('vllm'), sglang: await startEngine('sglang') };
  weights = new WeightStore(new FunctionRunner(redis, lb.pool.replace(/-\d+$/, '')));
});
afterAll(async () => {
  redis.disconnect();
  await Promise.all([lb.close(), ...DIALECTS.map((dialect) => engines[dialect].close())]);
});

/** A trainer that makes arbitrary changes of weights, and a worker beside it. */
class Run {
  private version = 0;
  private sequence = 0;
  served = 0;
  private constructor(private readonly worker: Awaited<ReturnType<LoadBalancers['worker']>>) {}

  static async start(): Promise<Run> {
    lb.nextPool();
    for (const dialect of DIALECTS) {
      const { url: endpoint } = engines[dialect];
      await fetch(`${endpoint}/simulator/reset`, { method: 'POST' });
      const { capabilities } = await createEngineAdapter(dialect, endpoint).probe();
      await lb.server(dialect, 8, { endpoint, dialect, capabilities, weightVersion: 0 });
    }
    return new Run(await lb.worker());
  }

  /** Returns a lease of the server; undefined when it takes no leases. A lease of another server is released. */
  private async lease(serverId: string) {
    const lease = await lb.acquire(this.worker, { boundServerId: serverId }).catch(() => undefined);
    if (lease === undefined || lease.serverId === serverId) return lease;
    await lb.release(lease.leaseId);
    return undefined;
  }

  /** Runs the prompt on each engine that takes leases. */
  async serve(): Promise<void> {
    for (const dialect of DIALECTS) {
      const lease = await this.lease(dialect);
      if (lease === undefined) continue;
      const engine = createEngineAdapter(dialect, lease.endpoint);
      const engineRequestId = String(++this.sequence).padStart(32, '0');
      const { cacheSalt } = lease;
      await engine.generate({ engineRequestId, prompt: { text: PROMPT }, maxTokens: 2, cacheSalt });
      await lb.release(lease.leaseId);
      this.served += 1;
    }
  }

  private async load(): Promise<void> {
    for (const dialect of DIALECTS) {
      const body = JSON.stringify({ model_path: '/weights' });
      await fetch(`${engines[dialect].url}${LOADS[dialect]}`, { method: 'POST', body });
    }
  }

  private async report(weightVersion: number): Promise<void> {
    for (const serverId of DIALECTS) await lb.call('server.update', { serverId, weightVersion });
  }

  async change({ mode, step, end, isBusy, isReported }: Change): Promise<void> {
    const version = this.version + step;
    const isKept = mode === undefined || mode === 'keep';
    let held = isBusy && isKept ? await Promise.all(DIALECTS.map((serverId) => this.lease(serverId))) : [];
    const syncId = `s${++this.sequence}`;
    if (mode !== undefined) await weights.begin(lb.pool, { syncId, version, mode, deadlineMs: 60_000 });
    await this.load();
    if (isReported || mode === undefined) await this.report(version);
    const isDeadline = mode !== undefined && end === 'deadline';
    if (isDeadline) {
      // The change has told holders to stop: they release their leases.
      for (const lease of held) if (lease !== undefined) await lb.release(lease.leaseId);
      held = [];
      await this.expire(syncId);
    } else if (mode !== undefined) {
      await weights.end(lb.pool, { syncId, outcome: end as Exclude<typeof end, 'deadline'>, reason: 'asked' });
    }
    await this.serve();
    if (isDeadline) await this.report(version);
    for (const lease of held) if (lease !== undefined) await lb.release(lease.leaseId);
    await this.serve();
    this.version = (await weights.status(lb.pool)).version ?? this.version;
    // The next change starts with weights that all engines have.
    await this.recover();
    await this.serve();
  }

  private async expire(syncId: string): Promise<void> {
    const prefix = lb.pool.replace(/-\d+$/, '');
    await redis.hset(`${prefix}:{${lb.pool}}:weights:sync`, 'deadlineAtMs', 1);
    await weights.rollbackOverdue(lb.pool, syncId);
  }

  private async recover(): Promise<void> {
    await this.load();
    await this.report(this.version);
    await expect
      .poll(async () => [...(await lb.list()).values()].map(({ state }) => state), { timeout: 20_000 })
      .toEqual(['ready', 'ready']);
  }
}

const changes = fc.array(
  fc.record({
    mode: fc.constantFrom<WeightSyncMode | undefined>('abort', 'wait', 'keep', undefined),
    step: fc.constantFrom<0 | 1>(0, 1),
    end: fc.constantFrom<Change['end']>('committed', 'rolled-back', 'deadline'),
    isBusy: fc.boolean(),
    isReported: fc.boolean(),
  }),
  { minLength: 1, maxLength: 6 },
);

it('lets no request use prefix cache entries of other weights, under any sequence of changes of weights', async () => {
  const property = fc.asyncProperty(changes, async (drawn) => {
    const run = await Run.start();
    await run.serve();
    for (const change of drawn) await run.change(change);
    for (const dialect of DIALECTS) expect((await fetchState(engines[dialect].url)).cachedByOtherWeights).toBe(0);
    expect(run.served).toBeGreaterThan(2 * drawn.length);
  });
  await fc.assert(property, { numRuns: 4 * inject('runsFactor'), endOnFailure: true });
}, 120_000);
