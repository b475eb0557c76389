import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openTestStore } from '../routing/routing-store.fixture';
import { FunctionRunner } from '../library/function-runner';
import { WeightStore } from '../weights/weight.store';
import { PoolAudit } from './pool-audit';

let test: ReturnType<typeof openTestStore>;
let runner: FunctionRunner;
let audit: PoolAudit;
let key: (name: string) => string;
/** Nothing is on its way: a test itself does all that changes the pool. */
const PAUSE_MS = 10;
beforeEach(() => {
  test = openTestStore();
  runner = new FunctionRunner(test.redis, test.root.slice(0, test.root.indexOf(':')));
  audit = new PoolAudit(test.redis, runner, undefined, PAUSE_MS);
  key = (name) => `${test.root}:${name}`;
});
afterEach(() => test.close());

/** A pool in use: leases with and without sessions, idle sessions, waiters. */
async function pool() {
  const { epoch } = await test.server('a', 4);
  await test.server('b:1', 4);
  const worker = await test.worker('w');
  for (let n = 0; n < 6; n++)
    await test.acquire(worker, {
      acquireId: `a${n}`,
      sessionId: n < 3 ? `s${n % 2}` : undefined,
      groupId: n < 4 ? 'g' : undefined,
      contextTokens: 1_000 * n,
    });
  await test.release((await test.acquire(worker, { sessionId: 'idle' })).acquireId);
  for (let n = 0; n < 5; n++)
    await test.acquire(worker, { acquireId: `p${n}`, waitMs: 20_000, replyTo: `inbox.p${n}` });
  const { servers } = await test.servers.list(test.pool);
  return { epoch, worker, servers };
}
const listChecks = (findings: { check: string }[]) => [...new Set(findings.map(({ check }) => check))].sort();

it('finds the counts of a pool in use balanced, of an empty one too', async () => {
  expect(await audit.run(test.pool)).toMatchObject({ balanced: true, findings: [], unproven: [] });
  await pool();
  expect(await audit.run(test.pool)).toMatchObject({
    balanced: true,
    findings: [],
    counts: { servers: 2, leases: 8, serverLoads: 8, workerLoads: 8, sessions: 3, workers: 1, jobs: 0 },
  });
});

it('ends at its deadline with the counts proven so far, and without findings that are not confirmed', async () => {
  await pool();
  expect(await audit.run(test.pool, { maxMs: 0 })).toMatchObject({
    balanced: true,
    findings: [],
    counts: {},
    unproven: ['all that was not read before the deadline'],
  });
  const { servers } = await test.servers.list(test.pool);
  await test.redis.sadd(key(`server-leases:a:${servers.find(({ serverId }) => serverId === 'a')!.epoch}`), 'ghost');
  const now = vi.spyOn(performance, 'now');
  // The deadline comes in the second look.
  const looked = vi.spyOn(PoolAudit.prototype as unknown as { compareAll(): Promise<void> }, 'compareAll');
  now.mockImplementation(() => (looked.mock.calls.length > 1 ? 1_000 : 0));
  const cut = await audit.run(test.pool, { maxMs: 1_000 });
  expect(cut).toMatchObject({ balanced: true, findings: [] });
  expect(cut.unproven).toEqual(['all that was not read before the deadline', 'set-of-server-without-lease ghost']);
  now.mockImplementation(() => 0);
  expect(await audit.run(test.pool, { maxMs: 1_000 })).toMatchObject({ balanced: false });
  vi.restoreAllMocks();
});

it('finds nothing wrong while expired leases are being returned', async () => {
  const { worker } = await pool();
  await test.servers.remove(test.pool, { serverId: 'a' });
  await test.workers.deregister(test.pool, { workerId: 'w', workerEpoch: worker.workerEpoch });
  expect((await audit.run(test.pool)).findings).toEqual([]);
  await test.sweep();
  expect((await audit.run(test.pool)).findings).toEqual([]);
});

describe('weights that changed', () => {
  const NEWER = 2;
  let weights: WeightStore;
  const sync = { syncId: 'sync', version: NEWER };
  const begin = () => weights.begin(test.pool, { ...sync, mode: 'keep', deadlineMs: 60_000 });
  const verdict = async () => {
    const { findings, unproven } = await audit.run(test.pool);
    return { findings, unproven };
  };
  beforeEach(async () => {
    weights = new WeightStore(runner);
    await pool();
    await test.configure({ requiredWeightVersion: 0 });
  });

  it('are no fault of a server that the load-balancer has yet to score by them', async () => {
    await begin();
    await test.servers.update(test.pool, { serverId: 'b:1', weightVersion: NEWER });
    await weights.end(test.pool, { syncId: sync.syncId, outcome: 'rolled-back', reason: 'asked' });
    expect(await verdict()).toEqual({ findings: [], unproven: ['place of server b:1'] });
    const { revision } = await test.pools.settings(test.pool);
    for await (const _ of test.servers.pages('rescore', test.pool));
    await test.pools.finish(test.pool, revision);
    expect(await verdict()).toEqual({ findings: [], unproven: [] });
    await test.redis.sadd(key('servers:usable'), 'b:1');
    expect(listChecks((await verdict()).findings)).toEqual(['server-usable']);
  });

  it('are no fault of a server that had the new ones before the change', async () => {
    await test.servers.update(test.pool, { serverId: 'b:1', weightVersion: NEWER });
    expect(await verdict()).toEqual({ findings: [], unproven: [] });
    await begin();
    expect(await verdict()).toEqual({ findings: [], unproven: ['place of server b:1'] });
  });
});

/** A damage by name, the function that does it, and the checks that fail. Repair must mend it from the leases. */
const damages: [string, (its: Awaited<ReturnType<typeof pool>>) => Promise<unknown>, string[]][] = [
  [
    'a lease that is missing in the set of its server',
    ({ servers }) => {
      const server = servers.find(({ serverId }) => serverId === 'b:1');
      return test.redis.spop(key(`server-leases:b:1:${server!.epoch}`));
    },
    ['lease-not-in-set-of-server', 'server-eligible'],
  ],
  [
    'a lease that is missing in the set of its worker',
    ({ worker }) => test.redis.spop(key(`worker-leases:w:${worker.workerEpoch}`)),
    ['lease-not-in-set-of-worker'],
  ],
  [
    'a place in the set of a server that no lease holds',
    ({ epoch }) => test.redis.sadd(key(`server-leases:a:${epoch}`), 'ghost'),
    ['set-of-server-without-lease'],
  ],
  [
    'a lease that its request does not know, and one that only its request knows',
    () => test.redis.hset(key('leases:requests'), 'job/group/0', 'ghost'),
    ['lease-not-of-request', 'request-without-lease'],
  ],
  [
    'a set of the leases of a request that nobody knows, and a known one that is gone',
    async () => {
      await test.redis.sadd(key('request-leases:lost'), 'ghost');
      await test.redis.hset(key('leases:requests'), 'gone', '*');
    },
    ['request-set-unknown', 'request-without-lease'],
  ],
  [
    'a set of a server epoch that is long gone',
    () => test.redis.sadd(key('server-leases:gone:77'), 'a1'),
    ['set-of-server-without-lease'],
  ],
  [
    'a server that has room and is not eligible',
    async ({ worker }) => {
      await test.release('a0');
      await test.waiters.expire(test.pool);
      await test.leases.cancel(test.pool, { ...worker, acquireId: 'p1' });
      for (const id of ['p0', 'p2', 'p3', 'p4']) await test.release(id);
      await test.redis.zrem(key('eligible'), 'a', 'b:1');
    },
    ['server-eligible'],
  ],
  [
    'a server in an index that is not there',
    () => test.redis.zadd(key('eligible'), 1, 'nobody'),
    ['index-without-server'],
  ],
  ['a usable server that is not in the set', () => test.redis.srem(key('servers:usable'), 'a'), ['server-usable']],
  [
    'index entries that are not those of their server',
    () => test.redis.srem(key('servers:with:@0|'), 'a'),
    ['server-index'],
  ],
  [
    'index entries of a server that is not there',
    () => test.redis.hset(key('servers:index-entries'), 'gone', '@0|'),
    ['index-without-server'],
  ],
  ['index entries that are missing', () => test.redis.hdel(key('servers:index-entries'), 'b:1'), ['server-index']],
  [
    'a session that counts a lease too many',
    async () => {
      const packed = (await test.redis.hget(key('sessions'), 's0'))!.split('|');
      packed[2] = String(Number(packed[2]) + 1);
      await test.redis.hset(key('sessions'), 's0', packed.join('|'));
    },
    ['session-lease-count'],
  ],
  ['an idle session that is not idle', () => test.redis.zrem(key('sessions:idle'), 'idle'), ['session-idle']],
  ['a digest that is off', () => test.redis.hincrby(key('worker:w'), 'leaseDigest', 3), ['worker-digest']],
  [
    'counters of tokens, sessions and siblings that are off, and one of a group that is gone',
    async ({ epoch }) => {
      await test.redis.hincrby(key('servers:tokens'), `a:${epoch}`, 5_000);
      await test.redis.hincrby(key('servers:sessions'), `a:${epoch}`, -1);
      await test.redis.hset(key('group-leases:g'), `a:${epoch}`, 9);
      await test.redis.hset(key('group-leases:gone'), 'x:1', 1);
    },
    ['group-leases', 'server-sessions', 'server-tokens'],
  ],
  ['a waiter in no lane', () => test.redis.zrem(key('waiters:lane:*'), 'p2'), ['waiter-not-in-lane']],
  ['a place in a lane of nobody', () => test.redis.zadd(key('waiters:lane:*'), 5, 'nobody'), ['lane-without-waiter']],
  [
    'a deadline of nobody',
    () => test.redis.zadd(key('waiters:acquire:deadlines'), 5, 'x'),
    ['deadline-without-waiter'],
  ],
];
it.each(damages)('finds and mends %s', async (_, damage, expected) => {
  const its = await pool();
  await damage(its);
  const found = await audit.run(test.pool);
  expect(found.balanced).toBe(false);
  expect(listChecks(found.findings)).toEqual(expected);
  const leases = await test.redis.hgetall(key('leases'));
  const mended = await audit.run(test.pool, { repair: true });
  expect(listChecks(mended.repaired)).toContain(expected[0]);
  expect(mended).toMatchObject({ balanced: true, findings: [] });
  expect(await test.redis.hgetall(key('leases'))).toEqual(leases);
});

describe('a server and a worker with more leases than one transition reads', () => {
  const LEASES = 1_300;
  let worker: Awaited<ReturnType<typeof pool>>['worker'];
  let epoch: string;
  beforeEach(async () => {
    ({ epoch } = await test.server('large', 10_000));
    worker = await test.worker('w');
    const items = Array.from({ length: LEASES }, (_, n) => ({
      acquireId: `a${n}`,
      requestId: 'r',
      sessionId: n % 3 === 0 ? `s${n % 9}` : undefined,
      groupId: `g${n % 4}`,
      contextTokens: 500,
      ...worker,
    }));
    await test.leases.acquire(test.pool, items);
  });

  it('are checked in pages: each of their sums is found and mended', async () => {
    expect(await audit.run(test.pool)).toMatchObject({ balanced: true, findings: [], unproven: [] });
    const stored = async () => [
      await test.redis.hget(key('servers:tokens'), `large:${epoch}`),
      await test.redis.hget(key('servers:sessions'), `large:${epoch}`),
      await test.redis.hget(key('group-leases:g1'), `large:${epoch}`),
      await test.redis.hget(key('sessions'), 's3'),
      await test.redis.hget(key('worker:w'), 'leaseDigest'),
    ];
    const before = await stored();
    await test.redis.hincrby(key('servers:tokens'), `large:${epoch}`, 7);
    await test.redis.hincrby(key('servers:sessions'), `large:${epoch}`, 1);
    await test.redis.hincrby(key('group-leases:g1'), `large:${epoch}`, -1);
    await test.redis.hset(key('group-leases:gone'), `large:${epoch}`, 2);
    await test.redis.hset(key('sessions'), 's3', before[3]!.replace(/\|(\d+)\|0\|$/, '|9|0|'));
    await test.redis.hincrby(key('worker:w'), 'leaseDigest', 3);
    const checks = ['group-leases', 'server-sessions', 'server-tokens', 'session-lease-count', 'worker-digest'];
    expect(listChecks((await audit.run(test.pool)).findings)).toEqual(checks);
    const mended = await audit.run(test.pool, { repair: true });
    expect(listChecks(mended.repaired)).toEqual(checks);
    expect(mended).toMatchObject({ balanced: true, findings: [], unproven: [] });
    expect(await stored()).toEqual(before);
    expect(await test.redis.exists(key('group-leases:gone'))).toBe(0);
  });

  it('are not mended from leases that changed while they were read', async () => {
    await test.redis.hincrby(key('servers:tokens'), `large:${epoch}`, 7);
    const run = runner.run.bind(runner);
    let passing: string | undefined;
    // A lease is granted and returned between every two marks.
    vi.spyOn(runner, 'run').mockImplementation(async (target, pool, args) => {
      const isMark = JSON.stringify(args).includes('"mark"');
      if (isMark && passing !== undefined) await test.release(passing);
      const reply = await run(target, pool, args);
      if (isMark) passing = (await test.acquire(worker, { contextTokens: 300 })).acquireId;
      return reply;
    });
    const { findings, unproven } = await audit.run(test.pool, { repair: true });
    expect(findings).toEqual([]);
    expect(unproven).toEqual(['worker w', `server large:${epoch}`]);
    expect(await test.redis.hget(key('servers:tokens'), `large:${epoch}`)).toBe(
      String(LEASES * (500 - 256) + 300 - 256 + 7),
    );
  });
});

it('finds wrong counts and queues of a job, and mends them from its requests', async () => {
  await test.redis.sadd(key('jobs'), 'job');
  await test.redis.hset(key('job-counts:job'), { submitted: 3, pending: 1, finished: 1, trained: 1 });
  await test.redis.hset(key('request:job/g/0'), { state: 'finished', attempt: '1-a', failures: 0 });
  await test.redis.hset(key('request:job/g/1'), { state: 'pending', attempt: '0', failures: 0 });
  await test.redis.zadd(key('job-pending:job'), 1, 'job/g/1');
  await test.redis.hset(key('group:job/g'), { state: 'live', samples: 2, finished: 1, live: 1, roundId: 'r' });
  expect(await audit.run(test.pool)).toMatchObject({ balanced: true, counts: { jobs: 1, requests: 2 } });
  await test.redis.hincrby(key('job-counts:job'), 'pending', 1);
  await test.redis.hset(key('group:job/g'), 'live', 2);
  await test.redis.zadd(key('job-longtail:job'), 1, 'lost');
  await test.redis.zrem(key('job-pending:job'), 'job/g/1');
  const { findings, balanced, repaired } = await audit.run(test.pool, { repair: true });
  expect({ balanced, findings }).toEqual({ balanced: true, findings: [] });
  expect(listChecks(repaired)).toEqual([
    'counts-balance',
    'counts-recount',
    'group-counters',
    'longtail-without-group',
    'request-pending-queue',
  ]);
  expect(await test.redis.hgetall(key('job-counts:job'))).toMatchObject({ submitted: '3', pending: '1', trained: '1' });
});

it('finds nothing wrong in a pool that is busy all the time', async () => {
  await test.server('a', 50);
  await test.server('b', 50);
  const worker = await test.worker('w');
  const traffic = { busy: true };
  const clients = Array.from({ length: 8 }, async (_, lane) => {
    while (traffic.busy) {
      const lease = await test.acquire(worker, { sessionId: `s${lane}` });
      await test.release(lease.acquireId);
    }
  });
  const patient = new PoolAudit(test.redis, runner);
  const reports = [];
  for (let n = 0; n < 3; n++) reports.push(await patient.run(test.pool));
  traffic.busy = false;
  await Promise.all(clients);
  expect(reports.flatMap(({ findings }) => findings)).toEqual([]);
});
