import {
  type AbortAttemptsCommand,
  type AbortRequestsRequest,
  type AbortResult,
  type JobStatus,
  type TailPolicy,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { bootstrapService, type RunningService, setFailpoints } from '@broomwagon/platform';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type SimulatorState, startEngine, stateOf } from '../apps/engine-simulator/src/test-engine';
import { LoadBalancerConfig } from '../apps/load-balancer/src/load-balancer.config';
import { LoadBalancerModule } from '../apps/load-balancer/src/load-balancer.module';
import { CoordinatorConfig } from '../apps/trainer-coordinator/src/coordinator.config';
import { CoordinatorModule } from '../apps/trainer-coordinator/src/coordinator.module';
import { WorkerConfig } from '../apps/worker/src/worker.config';
import { WorkerModule } from '../apps/worker/src/worker.module';

const JOB = 'job';
const POLICY: TailPolicy = { name: 'resume', overProvision: 1 };
const { pool: prefix } = testPool();
const pools = Array.from({ length: 24 }, (_, index) => `${prefix}-${index}`);

/** What all three services of this test are told. */
const shared = {
  natsUrl: testNatsUrl(),
  redisUrl: testRedisUrl(),
  redisKeyPrefix: prefix,
  logLevel: 'silent' as const,
};

let client: TypedClient;
let services: RunningService[];
let worker: RunningService<WorkerConfig> | undefined;
let engine: Awaited<ReturnType<typeof startEngine>>;
let pool: string;
let aborts = 0;

beforeAll(async () => {
  client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
  const coordinator = () =>
    bootstrapService(CoordinatorModule, {
      app: 'trainer-coordinator',
      configType: CoordinatorConfig,
      config: Object.assign(new CoordinatorConfig(), shared, {
        pools: [...pools],
        sweepIntervalMs: 50,
        cutRepeatMs: 200,
      }),
    });
  services = await Promise.all([
    coordinator(),
    coordinator(),
    bootstrapService(LoadBalancerModule, {
      app: 'load-balancer',
      configType: LoadBalancerConfig,
      config: Object.assign(new LoadBalancerConfig(), shared, { pools: [...pools] }),
    }),
  ]);
});
afterAll(async () => {
  for (const service of services) await service.close();
  await client.messaging.connection.close();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

beforeEach(async () => {
  pool = pools.pop()!;
  // Nothing ends by itself within a test.
  engine = await startEngine('vllm', { speed: 1, lengths: { name: 'long', lengthOf: () => 8_000 } });
});
afterEach(async () => {
  setFailpoints('');
  await worker?.close();
  worker = undefined;
  // In-flight is zero after every test, on the engine and in the books.
  await expect.poll(inflight, { timeout: 10_000 }).toEqual({ engine: 0, leases: 0, waiters: 0 });
  await engine.close();
});

async function inflight() {
  const { running, waiting } = await stateOf(engine.url);
  const { leases, waiters } = await client.call(pool, 'lb.status', {});
  return { engine: running + waiting, leases, waiters };
}

async function startWorker(settings: Partial<WorkerConfig> = {}): Promise<void> {
  const config = Object.assign(new WorkerConfig(), shared, {
    pool,
    workerId: 'w1',
    workerTtlMs: 2_000,
    claimWaitMs: 500,
    drainMs: 20,
    checkpointIntervalMs: 60_000,
    ...settings,
  });
  worker = await bootstrapService(WorkerModule, {
    app: 'worker',
    config,
    configType: WorkerConfig,
    transport: ({ workerId }) => ({ placeholders: { workerId } }),
  });
}

async function register(maxInflight = 64): Promise<void> {
  const body = { serverId: 's1', endpoint: engine.url, dialect: 'vllm' as const, instanceId: 'i1', maxInflight };
  await client.call(pool, 'server.register', body);
}

/** Opens a round of `count` groups of two samples and submits them. */
async function submit(count: number): Promise<void> {
  const wish = { job: JOB, groupsPerStep: count, remainingGroups: count, policy: POLICY };
  const { kind, ...plan } = await client.call(pool, 'round.next', wish);
  const round = { job: JOB, roundId: 'r1' };
  const { trainerEpoch } = await client.call(pool, 'round.open', {
    ...round,
    ...plan,
    kind: kind as 'short',
    policy: POLICY,
    weightVersion: 0,
  });
  const groups = Array.from({ length: count }, (_, index) => ({
    groupId: `g${index}`,
    samples: 2,
    maxTokens: 8_000,
    prompt: { text: `What is ${index}?` },
  }));
  await client.call(pool, 'round.submit', { ...round, trainerEpoch, groups });
}

function abort(selector: Partial<AbortRequestsRequest>): Promise<AbortResult[]> {
  const body = { abortId: `a${aborts++}`, waitMs: 10_000, ...selector };
  return client.call(pool, 'request.abort', body, { timeoutMs: 20_000 }).then(({ results }) => results);
}

const running = (count: number) =>
  expect.poll(async () => (await stateOf(engine.url)).running, { timeout: 20_000 }).toBe(count);
const made = (least: number) =>
  expect
    .poll(async () => Math.min(...liveRows(await stateOf(engine.url)).map((row) => row.made)), { timeout: 20_000 })
    .toBeGreaterThanOrEqual(least);
const liveRows = ({ table }: SimulatorState) =>
  table.filter((row) => row.state === 'running' || row.state === 'waiting');
const books = async (): Promise<JobStatus> => client.call(pool, 'job.status', { job: JOB });

describe('request.abort with a real worker and engine', () => {
  it('stops one request on the engine and with it its group, and answers with its tokens', async () => {
    await register();
    await submit(2);
    await startWorker();
    await running(4);
    await made(3);
    const [result] = await abort({ requestIds: ['job/g0/1'] });
    // Confirmed means stopped on the engine: nothing is waited for here.
    const state = await stateOf(engine.url);
    expect(result).toMatchObject({ requestId: 'job/g0/1', outcome: 'aborted' });
    expect(result!.tokenCount).toBeGreaterThanOrEqual(3);
    const { segments } = result!;
    expect(segments!.map((segment) => segment.tokenCount)).toEqual([result!.tokenCount]);
    const { data } = await client.call(pool, 'payload.get', { ref: segments![0]!.ref });
    const payload = JSON.parse(Buffer.from(data, 'base64').toString('utf8')) as { tokenIds: number[] };
    expect(payload.tokenIds).toHaveLength(result!.tokenCount!);
    expect(liveRows(state).length).toBeLessThanOrEqual(3);

    await expect.poll(async () => (await books()).requests).toMatchObject({ dropped: 2, running: 2, cutting: 0 });
    await running(2);
    expect(await books()).toMatchObject({ droppedGroups: 1, failedGroups: 0 });
    expect(await client.call(pool, 'round.status', { job: JOB })).toMatchObject({
      state: 'open',
      droppedGroups: 1,
      shortfallGroups: 1,
    });
    expect((await inflight()).leases).toBe(2);
    // A repeat is a no-op that says the same.
    expect((await abort({ requestIds: ['job/g0/1'] }))[0]).toEqual(result);
    await abort({ job: JOB });
  });

  const selectors: [string, Partial<AbortRequestsRequest>][] = [
    ['group', { groupId: 'g0', job: JOB }],
    ['worker', { workerId: 'w1' }],
    ['server', { serverId: 's1' }],
    ['round', { roundId: 'r1', job: JOB }],
    ['job', { job: JOB }],
    ['all', { all: true }],
  ];
  for (const [name, selector] of selectors) {
    it(`stops what a ${name} has, and leaves no lease`, async () => {
      await register();
      await submit(1);
      await startWorker();
      await running(2);
      const results = await abort(selector);
      expect(liveRows(await stateOf(engine.url))).toEqual([]);
      expect(results.map(({ requestId }) => requestId).sort()).toEqual(['job/g0/0', 'job/g0/1']);
      expect(results.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted']);
      await expect.poll(inflight).toEqual({ engine: 0, leases: 0, waiters: 0 });
      expect((await books()).requests).toMatchObject({ submitted: 2, dropped: 2 });
    });
  }

  it('wins over a request that comes later, and over one whose acquire still waits', async () => {
    await register(1);
    const [unknown] = await abort({ requestIds: ['job/g1/0'] });
    expect(unknown).toEqual({ requestId: 'job/g1/0', outcome: 'not-found' });
    await submit(2);
    expect((await books()).requests).toMatchObject({ dropped: 2, pending: 2 });
    await startWorker();
    await running(1);
    await expect.poll(async () => (await inflight()).waiters).toBe(1);
    const results = await abort({ groupId: 'g0', job: JOB });
    expect(results.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted']);
    await expect.poll(inflight).toEqual({ engine: 0, leases: 0, waiters: 0 });
    expect((await books()).requests).toMatchObject({ submitted: 4, dropped: 4 });
  });

  it('is done though the replica dies after recording it, or the worker is never heard of again', async () => {
    await register();
    await submit(1);
    await startWorker();
    await running(2);
    setFailpoints('coordinator.abort.after-intent=throw@1');
    await expect(abort({ job: JOB })).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect.poll(async () => (await books()).requests, { timeout: 10_000 }).toMatchObject({ dropped: 2 });
    await expect.poll(inflight).toEqual({ engine: 0, leases: 0, waiters: 0 });

    const { workerEpoch } = await client.call(pool, 'worker.register', { workerId: 'mute', registrationId: 'm' });
    await worker!.close();
    await client.call(pool, 'round.submit', {
      job: JOB,
      roundId: 'r1',
      trainerEpoch: 1,
      groups: [{ groupId: 'g9', samples: 1, maxTokens: 10, prompt: { text: 'x' } }],
    });
    const fence = { workerId: 'mute', workerEpoch };
    expect((await client.call(pool, 'request.claim', { claimId: 'c', ...fence, max: 1 })).claims).toHaveLength(1);
    expect((await abort({ requestIds: ['job/g9/0'], waitMs: 50 }))[0]).toMatchObject({ outcome: 'aborting' });
    await client.call(pool, 'worker.deregister', fence);
    expect((await abort({ requestIds: ['job/g9/0'] }))[0]).toMatchObject({ outcome: 'aborted', tokenCount: 0 });
  });
});

describe('request.abort of those who only route', () => {
  it('tells the holder until it releases, by session, request, worker or server', async () => {
    await register();
    const { workerEpoch } = await client.call(pool, 'worker.register', { workerId: 'loop', registrationId: 'l' });
    const commands: AbortAttemptsCommand[] = [];
    client.messaging.subscribe(workerCommandSubject(pool, 'loop', 'abort'), (body) => {
      commands.push(body as unknown as AbortAttemptsCommand);
    });
    const selectors = [{ sessionId: 's' }, { requestIds: ['traj/1'] }, { workerId: 'loop' }, { serverId: 's1' }];
    for (const [index, selector] of [...selectors, { all: true as const }].entries()) {
      commands.length = 0;
      const wish = { requestId: 'traj/1', sessionId: 's', workerId: 'loop', workerEpoch };
      const { leaseId } = await client.call(pool, 'lb.acquire', { acquireId: `q${index}`, ...wish });
      const body = { abortId: `route-${index}`, ...selector };
      const first = await client.call(pool, 'request.abort', body);
      expect(first.results).toEqual([{ requestId: 'traj/1', leaseId, outcome: 'aborting' }]);
      await expect.poll(() => commands.length).toBeGreaterThanOrEqual(2);
      expect(commands[0]).toEqual({
        workerEpoch,
        cause: 'abort',
        attempts: [],
        leases: [{ leaseId, requestId: 'traj/1' }],
      });
      await client.call(pool, 'lb.release', { leaseId, outcome: 'aborted' });
      const after = await client.call(pool, 'request.abort', { ...body, waitMs: 5_000 });
      expect(after.results).toEqual([{ requestId: 'traj/1', leaseId, outcome: 'aborted' }]);
    }
  });

  it('refuses an empty list, two selectors, none, and an id that meant something else', async () => {
    const refused = (body: object, field: string) =>
      expect(client.call(pool, 'request.abort', { abortId: 'bad', ...body })).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
        field,
      });
    await refused({ requestIds: [] }, 'requestIds');
    await refused({ requestIds: ['a b'] }, 'requestIds');
    await refused({ requestIds: Array.from({ length: 129 }, (_, index) => `r${index}`) }, 'requestIds');
    await refused({ requestIds: ['a'], all: true }, 'all');
    await refused({ workerId: 'w', serverId: 's' }, 'serverId');
    await refused({ workerId: 'w', job: 'j' }, 'job');
    await refused({ groupId: 'g' }, 'job');
    await refused({}, 'requestIds');
    await refused({ all: false }, 'all');
    await refused({ all: true, waitMs: 30_001 }, 'waitMs');
    await client.call(pool, 'request.abort', { abortId: 'bad', job: 'nobody' });
    await refused({ all: true }, 'abortId');
  });
});

describe("a worker's own end", () => {
  it('stops its requests on the engine and gives each lease and each waiting acquire back once', async () => {
    await register(1);
    await submit(1);
    await startWorker();
    await running(1);
    await expect.poll(async () => (await inflight()).waiters).toBe(1);
    await worker!.close();
    expect(await inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });
    // One may have gone to a claim of its own that still waited; it comes back with the epoch.
    await expect.poll(async () => (await books()).requests).toMatchObject({ pending: 2, running: 0, claimed: 0 });
  });

  it('stops them too when it has lost its epoch', async () => {
    await register();
    await submit(1);
    await startWorker({ workerTtlMs: 900 });
    await running(2);
    // Another process takes its name, as after a partition.
    await client.call(pool, 'worker.register', { workerId: 'w1', registrationId: 'another' });
    await client.call(pool, 'request.abort', { abortId: 'lost', job: JOB });
    await expect.poll(inflight, { timeout: 15_000 }).toEqual({ engine: 0, leases: 0, waiters: 0 });
    await expect.poll(async () => (await books()).requests, { timeout: 10_000 }).toMatchObject({ dropped: 2 });
  });
});
