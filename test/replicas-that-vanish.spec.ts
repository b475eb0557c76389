import { isBroomwagonError, type OperationName, type ReplyOf, type RequestOf } from '@broomwagon/contracts';
import { connectRedis, PoolAudit, FunctionRunner } from '@broomwagon/state';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from './system/test-system';

const CALLERS = 48;
/** Leases at once: some callers always wait. */
const CAPACITY = 16;
/** Pairs of acquire and release between two kills. */
const PAIRS_BETWEEN_KILLS = 400;
const PAIRS_WHILE_STOPPED = 60;
/** A reply that is this late was lost with its replica; the call is sent again under the same id. */
const REPLY_TIMEOUT_MS = 1_000;
const CALL_DEADLINE_MS = 20_000;

describe('two load-balancers, one of them away in the middle of a burst', () => {
  let system: TestSystem;
  beforeAll(async () => {
    system = await TestSystem.start({ balancers: 2, coordinators: 0, workers: 0, engines: 1 });
    await system.call('server.update', { serverId: 'engine-0', maxInflight: CAPACITY });
  });
  afterAll(() => system?.stop());

  async function untilAnswered<Name extends OperationName>(name: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    const endsAt = performance.now() + CALL_DEADLINE_MS;
    for (;;) {
      try {
        return await system.client.call(system.pool, name, body, { timeoutMs: REPLY_TIMEOUT_MS });
      } catch (error) {
        if (!isBroomwagonError(error) || !error.retryable || performance.now() > endsAt) throw error;
      }
    }
  }

  /** Runs callers during `disturb`. Its argument `untilMore` waits for `more` further acquires with their releases. */
  async function burst(workerId: string, disturb: (untilMore: (more: number) => Promise<void>) => Promise<void>) {
    const worker = { workerId, registrationId: 'once', ttlMs: 120_000 };
    const { workerEpoch } = await system.call('worker.register', worker);
    const leaseIds = new Set<string>();
    const outcomes = new Map<string, number>();
    let pairs = 0;
    const stopping = new AbortController();
    const caller = async (name: number) => {
      for (let turn = 0; !stopping.signal.aborted; turn++) {
        const item = { acquireId: `${workerId}-${name}-${turn}`, requestId: `job/g/${name}`, workerId, workerEpoch };
        const { leaseId } = await untilAnswered('lb.acquire', { ...item, waitMs: CALL_DEADLINE_MS });
        expect(leaseIds.has(leaseId), `${leaseId} was given twice`).toBe(false);
        leaseIds.add(leaseId);
        const { reason } = await untilAnswered('lb.release', { leaseId, outcome: 'finished' });
        outcomes.set(reason, (outcomes.get(reason) ?? 0) + 1);
        pairs++;
      }
    };
    const callers = Promise.all(Array.from({ length: CALLERS }, (_, name) => caller(name)));
    const untilMore = (more: number) => {
      const wanted = pairs + more;
      return expect.poll(() => pairs, { timeout: CALL_DEADLINE_MS }).toBeGreaterThan(wanted);
    };
    await Promise.race([disturb(untilMore), callers]).finally(() => stopping.abort());
    await callers;
    // A release whose reply was lost is answered `already-released` when it is repeated.
    expect([...outcomes.keys()].filter((reason) => !['released', 'already-released'].includes(reason))).toEqual([]);
    expect(leaseIds.size).toBe(pairs);
    expect(await system.call('lb.status', {})).toMatchObject({ leases: 0, waiters: 0, expiredEpochs: 0 });
    const redis = connectRedis({ url: system.redisUrl });
    const report = await new PoolAudit(redis, new FunctionRunner(redis, system.keyPrefix)).run(system.pool);
    redis.disconnect();
    expect(report).toMatchObject({ balanced: true, findings: [] });
  }

  it('killed: loses no call, gives no lease twice, and leaves balanced counts', () =>
    burst('w', async (untilMore) => {
      for (const name of ['load-balancer-1', 'load-balancer-2']) {
        await untilMore(PAIRS_BETWEEN_KILLS);
        const victim = system.process(name);
        victim.kill('SIGKILL');
        await victim.exited;
        // The other replica goes on alone.
        await untilMore(PAIRS_BETWEEN_KILLS);
        await victim.start();
      }
    }));

  it('stopped and continued: its late work on calls that were repeated elsewhere changes nothing', () =>
    burst('v', async (untilMore) => {
      await untilMore(PAIRS_BETWEEN_KILLS);
      const victim = system.process('load-balancer-1');
      victim.kill('SIGSTOP');
      try {
        // The stopped replica still gets half of the calls, which time out and are sent again.
        await untilMore(PAIRS_WHILE_STOPPED);
      } finally {
        victim.kill('SIGCONT');
      }
      await untilMore(PAIRS_BETWEEN_KILLS);
    }));
});
