import {
  ENGINE_FEATURES,
  type Epoch,
  LIMITS,
  MAX_COMPOSED_ID_BYTES,
  MAX_LABELS,
  type OperationName,
  OPERATIONS,
  PAUSE_MODES,
  type ReplyOf,
  type RequestOf,
} from '@broomwagon/contracts';
import { connectRedis, FunctionRunner, ServerStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceBench } from './system/service-bench';

/**
 * No reply is larger than a message of NATS, whatever its request and the state of the pool: a table of all operations.
 * Replies that grow are requested here with the largest entries that the contracts allow, and more than a page holds.
 */
const ONE = 'one thing, each field of it bounded';
/** Number of short names up to which Redis keeps a set in a form that it scans at once, whatever the page. */
const SMALL_SET = 128;
const SERVERS = 160;
const LEASES = 256;
const JOBS = 10_000;
/** A request page ends with the group that makes it 128: 127 of one group and all of the next. */
const SAMPLES = [127, 128];
const QUEUED = 130;

const wide = (name: string, length = 128) => name.padEnd(length, 'x');
const ID = wide('id');
const JOB = wide('job');
const worker = { workerId: wide('worker'), workerEpoch: '' as Epoch };
const labels = Object.fromEntries(
  Array.from({ length: MAX_LABELS }, (_, index) => [wide(`label-${index}`, 63), wide('value', 63)]),
);
const capabilities = {
  ...Object.fromEntries(ENGINE_FEATURES.map((feature) => [feature, false])),
  pauseModes: [...PAUSE_MODES],
  dataParallelRanks: 65_536,
  maxModelTokens: 1_000_000,
  version: '\u0001'.repeat(64),
};
const round = { job: JOB, roundId: wide('round'), trainerEpoch: '' as Epoch };
const POLICY = { name: 'resume', overProvision: 1 } as const;

let bench: ServiceBench;
let smallList: ReplyOf<'server.list'>;
const call = <Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> =>
  bench.client.call(bench.pool, operation, body, { timeoutMs: 20_000 });
const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const requestIds = (group: number, samples: number) => range(samples).map((n) => `${JOB}/${groupId(group)}/${n}`);
const groupId = (index: number) => wide(`group-${index}`);
const group = (index: number, samples: number) => ({
  groupId: groupId(index),
  samples,
  maxTokens: 10,
  prompt: { text: 'why' },
});
const acquires = (from: number, count: number, more: object = {}) =>
  range(count).map((index) => ({ acquireId: wide(`a${from + index}`), requestId: 'r', ...more }));
const burst = (from: number, count: number, more: object = {}) =>
  call('lb.acquire-many', { ...worker, acquires: acquires(from, count, more) });

beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent' }, 1);
  await bench.begin();
  const redis = connectRedis({ url: testRedisUrl() });
  const servers = new ServerStore(new FunctionRunner(redis, bench.prefix));
  // The list of models is as large as a probe accepts: each character has two bytes in JSON.
  const models = range(4).map((n) => `${n}${'/'.repeat(LIMITS.modelListBytes / 4 - 2)}`);
  const register = async (index: number) => {
    const serverId = wide(`server-${index}`, index < SMALL_SET ? 64 : 128);
    await call('server.register', {
      serverId,
      endpoint: wide(`http://127.0.0.1/${index}`, 512),
      dialect: 'sglang',
      probe: false,
      model: '\u0001'.repeat(256),
      maxInflight: 1_000_000,
      weight: 1,
      labels,
      capabilities,
    });
    await servers.update(bench.pool, { serverId, models });
  };
  await Promise.all(range(SMALL_SET).map(register));
  smallList = await call('server.list', {});
  expect(smallList.servers).toHaveLength(SMALL_SET);
  await Promise.all(range(SERVERS - SMALL_SET).map((index) => register(SMALL_SET + index)));
  const registration = { workerId: worker.workerId, registrationId: ID, ttlMs: 3_600_000 };
  ({ workerEpoch: worker.workerEpoch } = await call('worker.register', registration));
  const others = range(SERVERS).map((index) =>
    call('worker.register', { ...registration, workerId: wide(`worker-${index}`) }),
  );
  await Promise.all(others);
  const correlation = { requestId: wide('r', MAX_COMPOSED_ID_BYTES), groupId: wide('g', MAX_COMPOSED_ID_BYTES) };
  for (let from = 0; from < LEASES; from += 64) {
    const items = acquires(from, 64).map((item, index) => ({
      ...item,
      ...correlation,
      sessionId: wide(`s${from + index}`, MAX_COMPOSED_ID_BYTES),
    }));
    await call('lb.acquire-many', { ...worker, acquires: items });
  }
  await openRound();
  for (const index of [0, 1]) await submit([group(index, SAMPLES[index]!)]);
  for (let claims = 1; claims > 0;) {
    ({ length: claims } = (
      await call('request.claim', { claimId: wide(`c${Math.random()}`), ...worker, max: 128 })
    ).claims);
  }
  const [key] = await redis.keys(`*{${bench.pool}}:jobs`);
  await redis.sadd(key!, ...range(JOBS).map((index) => wide(`job-${index}`)));
  await redis.quit();
}, 120_000);
afterAll(() => bench.close());

async function openRound(): Promise<void> {
  const groupsPerStep = SAMPLES.length + QUEUED;
  const { kind, ...plan } = await call('round.next', {
    job: JOB,
    groupsPerStep,
    remainingGroups: groupsPerStep,
    policy: POLICY,
  });
  const { roundId } = round;
  const opening = { job: JOB, roundId, ...plan, kind: kind as 'short', policy: POLICY };
  ({ trainerEpoch: round.trainerEpoch } = await call('round.open', opening));
}

async function submit(groups: RequestOf<'round.submit'>['groups']): Promise<void> {
  await call('round.submit', { ...round, groups });
}

/** All pages of a list, from the page that the body asks for. */
async function pages<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>[]> {
  const all: ReplyOf<Name>[] = [];
  let next: RequestOf<Name> | undefined = body;
  while (next !== undefined) {
    const page: ReplyOf<Name> = await call(operation, next);
    all.push(page);
    const { cursor } = page as { cursor?: unknown };
    next = cursor === undefined ? undefined : { ...body, cursor };
  }
  return all;
}

/** By operation: the reason why its reply does not grow, or a function that returns its largest replies. */
const REPLIES: { [Name in OperationName]: string | (() => Promise<unknown[]>) } = {
  'lb.acquire': async () => [
    await call('lb.acquire', { ...acquires(10_000, 1)[0]!, ...worker, labels, explain: true }),
  ],
  'lb.acquire-many': async () => {
    const explained: unknown[] = [];
    // The loop fills the ring of explained decisions.
    for (let from = 20_000; from < 20_064; from += LIMITS.explainsPerCall) {
      explained.push(await burst(from, LIMITS.explainsPerCall, { explain: true }));
    }
    const many = await burst(30_000, LIMITS.acquiresPerCall);
    const full = many.leases.filter((lease) => 'error' in lease);
    expect(full.length).toBeGreaterThan(0);
    // Each of these acquires was granted. Its error has `granted`, and a repeat returns the lease.
    for (const lease of full)
      expect(lease).toMatchObject({ error: { code: 'REPLY_FULL', details: { granted: true } } });
    const again = full.slice(0, 100).map(({ acquireId }) => ({ acquireId, requestId: 'r' }));
    const { leases } = await call('lb.acquire-many', { ...worker, acquires: again });
    expect(leases.filter((lease) => 'error' in lease)).toEqual([]);
    return [...explained, many];
  },
  'lb.release': ONE,
  'lb.release-many': 'at most 2,048 times a flag and a word',
  'lb.transfer': ONE,
  'lb.status': async () => [await call('lb.status', {})],
  'lb.finish-session': ONE,
  'lb.cancel': ONE,
  'lb.clear-sessions': ONE,
  'lb.decisions': async () => [...(await pages('lb.decisions', {})), ...(await pages('lb.decisions', { full: true }))],
  'pool.configure': ONE,
  'pool.settings': ONE,
  'pool.history': '32 versions of settings that are bounded',
  'pool.rollback': ONE,
  'pool.find': 'at most 128 names of pools',
  'pool.pause': ONE,
  'pool.resume': ONE,
  'server.register': ONE,
  'server.heartbeat': ONE,
  'server.remove': ONE,
  'server.update': ONE,
  'server.drain': ONE,
  'server.cordon': ONE,
  'server.uncordon': ONE,
  'server.fence': ONE,
  'server.quarantine': ONE,
  'server.get': ONE,
  'server.reconcile': async () => {
    const serverId = wide('server-0', 64);
    return pages('server.reconcile', { serverId });
  },
  'server.list': async () => {
    const all = await pages('server.list', {});
    expect(new Set(all.flatMap(({ servers }) => servers.map(({ serverId }) => serverId))).size).toBe(SERVERS);
    return [smallList, ...all];
  },
  'worker.register': ONE,
  'worker.heartbeat': ONE,
  'worker.sync': async () => [
    ...(await pages('worker.sync', { ...worker, kind: 'leases' })),
    ...(await pages('worker.sync', { ...worker, kind: 'attempts' })),
  ],
  'worker.deregister': ONE,
  'worker.list': () => pages('worker.list', {}),
  'lb.leases': () => pages('lb.leases', {}),
  'lb.lease': ONE,
  'lb.sessions': () => pages('lb.sessions', {}),
  'pool.audit': '128 findings and jobs at most',
  'round.list': '16 rounds, and those that are not folded: one or two',
  'group.list': () => pages('group.list', { job: JOB }),
  'request.get': ONE,
  'request.list': async () => [
    ...(await pages('request.list', { job: JOB })),
    ...(await pages('request.list', { workerId: worker.workerId })),
  ],
  'round.next': ONE,
  'round.open': ONE,
  'round.takeover': ONE,
  'round.submit': ONE,
  'round.status': async () => [await call('round.status', { job: JOB })],
  'round.results': 'ends at half a message: results.service, request.spec',
  'round.reward': 'at most 128 times an id and a word',
  'round.close': 'a proof that is refused names at most 3 times 128 groups',
  'request.claim': 'ends at half a message: request.spec',
  'request.segments': 'ends at half a message: request.spec',
  'request.save': ONE,
  'payload.get-many': 'half of a message of chunks, and an error of bounded size for each other payload',
  'request.complete-many': 'one of at most 128 samples each: a word and two flags, or an error',
  'request.save-many': 'one of at most 128 saves each: a word and a number, or an error',
  'request.complete': ONE,
  'request.fail': ONE,
  'request.abort': async () => {
    const [first, second] = [requestIds(0, SAMPLES[0]!), requestIds(1, SAMPLES[1]!)];
    const ask = (ids: string[], abortId: string) =>
      pages('request.abort', { abortId, requestIds: ids, reason: wide('reason', 256) });
    return [...(await ask(first, 'a1')), ...(await ask(second, 'a2'))];
  },
  'weights.begin': ONE,
  'weights.commit': ONE,
  'weights.rollback': ONE,
  'weights.status': () => pages('weights.status', { cursor: '0' }),
  'round.cancel': ONE,
  'longtail.requeue': 'one of at most 128 requests each: an id and a word, or an error',
  'longtail.drop': async () => {
    const names = range(LIMITS.groupsPerSubmit).map((index) => wide(`never-${index}`));
    const { job, trainerEpoch } = round;
    return [await call('longtail.drop', { job, trainerEpoch, groupIds: names, reason: 'test' })];
  },
  'longtail.stats': ONE,
  'longtail.list': async () => {
    for (let from = 0; from < QUEUED; from += 65) await submit(range(65).map((index) => group(2 + from + index, 1)));
    await call('round.cancel', { ...round, mode: 'requeue', reason: 'test' });
    const queued = async () => (await call('longtail.stats', { job: JOB })).groups;
    await expect.poll(queued).toBeGreaterThanOrEqual(QUEUED);
    return pages('longtail.list', { job: JOB });
  },
  'job.configure': ONE,
  'job.delete': ONE,
  'pool.ledger': ONE,
  'pool.delete': ONE,
  'job.reconcile': async () => {
    const groupIds = range(LIMITS.groupsPerReconcile).map((index) => wide(`never-${index}`));
    const { trainerEpoch } = await call('round.takeover', { job: JOB, takeoverId: 'again' });
    return [await call('job.reconcile', { job: JOB, trainerEpoch, groupIds })];
  },
  'job.snapshot': ONE,
  'job.restore': ONE,
  'job.snapshots': 'two, and what is under way',
  'rebalance.configure': ONE,
  'rebalance.plan': 'a page of 128 moves, as rebalance.status',
  'rebalance.execute': async () => {
    const moves = range(LIMITS.page).map((index) => ({
      requestId: wide(`r${index}`, MAX_COMPOSED_ID_BYTES),
      targetServerId: wide('server-0', 64),
      targetEpoch: 'e1',
    }));
    return [await call('rebalance.execute', { planId: ID, moves })];
  },
  'rebalance.status': () => pages('rebalance.status', { planId: ID }),
  'job.status': ONE,
  'job.list': async () => {
    const all = await pages('job.list', {});
    expect(new Set(all.flatMap(({ jobs }) => jobs)).size).toBe(JOBS + 1);
    return all;
  },
  'job.ledger': ONE,
  'prompt.remember': ONE,
  'prompt.lengths': 'at most 128 ids of the request, with four numbers each',
  'payload.put': ONE,
  'payload.get': 'one chunk of at most 256 kB',
  'payload.stat': ONE,
};

describe('a reply is no larger than a message may be', () => {
  const growing = Object.entries(REPLIES).flatMap(([name, ask]) =>
    typeof ask === 'string' ? [] : [[name, ask] as const],
  );

  it('for each operation: the table has a reason or the largest replies', () => {
    expect(Object.keys(REPLIES).toSorted()).toEqual(Object.keys(OPERATIONS).toSorted());
  });

  it.each(growing)('%s', async (_, ask) => {
    const sizes = (await ask()).map((reply) => Buffer.byteLength(JSON.stringify(reply)));
    expect(sizes.length).toBeGreaterThan(0);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(LIMITS.bodyBytes);
  });
});
