import {
  type AbortAttemptsCommand,
  type AbortRequestsRequest,
  type AbortResult,
  type AttemptId,
  type SaveManyRequest,
  buildSubject,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { engineRequestId } from '@broomwagon/engines';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../libs/platform/src/failpoint';
import { inject } from '../lab/engine-simulator/src/test-engine';
import { liveRows, ServiceBench } from './system/service-bench';

const JOB = 'job';
let bench: ServiceBench;
let aborts = 0;

beforeAll(async () => {
  bench = await ServiceBench.open();
});
afterAll(() => bench.close());
beforeEach(() => bench.begin());
afterEach(async () => {
  setFailpoints('');
  await bench.end();
});

function abort(selector: Partial<AbortRequestsRequest>): Promise<AbortResult[]> {
  const body = { abortId: `a${aborts++}`, waitMs: 10_000, ...selector };
  return bench.client.call(bench.pool, 'request.abort', body, { timeoutMs: 20_000 }).then(({ results }) => results);
}

describe('request.abort with a real worker and engine', () => {
  it('stops one request on the engine and with it its group, and answers with its tokens', async () => {
    await bench.register();
    await bench.submit(2);
    await bench.startWorker();
    await bench.running(4);
    await bench.made(3);
    const [result] = await abort({ requestIds: ['job/g0/1'] });
    // Confirmed means stopped on the engine: nothing is waited for here.
    const state = await bench.engineState();
    expect(result).toMatchObject({ requestId: 'job/g0/1', outcome: 'aborted' });
    expect(result!.tokenCount).toBeGreaterThanOrEqual(3);
    const { segments } = result!;
    expect(segments!.map((segment) => segment.tokenCount)).toEqual([result!.tokenCount]);
    const { data } = await bench.client.call(bench.pool, 'payload.get', { ref: segments![0]!.ref });
    const payload = JSON.parse(Buffer.from(data, 'base64').toString('utf8')) as { tokenIds: number[] };
    expect(payload.tokenIds).toHaveLength(result!.tokenCount!);
    expect(liveRows(state).length).toBeLessThanOrEqual(3);

    await expect
      .poll(async () => (await bench.counts()).requests)
      .toMatchObject({ dropped: 2, running: 2, cutting: 0 });
    await bench.running(2);
    expect(await bench.counts()).toMatchObject({ droppedGroups: 1, failedGroups: 0 });
    expect(await bench.client.call(bench.pool, 'round.status', { job: JOB })).toMatchObject({
      state: 'open',
      droppedGroups: 1,
      shortfallGroups: 1,
    });
    expect((await bench.inflight()).leases).toBe(2);
    // A repeat has no effect and the same result.
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
    it(`stops the requests that the selector ${name} matches, and leaves no lease`, async () => {
      await bench.register();
      await bench.submit(1);
      await bench.startWorker();
      await bench.running(2);
      const results = await abort(selector);
      expect(liveRows(await bench.engineState())).toEqual([]);
      expect(results.map(({ requestId }) => requestId).sort()).toEqual(['job/g0/0', 'job/g0/1']);
      expect(results.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted']);
      await expect.poll(() => bench.inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });
      expect((await bench.counts()).requests).toMatchObject({ submitted: 2, dropped: 2 });
    });
  }

  it('wins over a request that comes later, and over one whose acquire still waits', async () => {
    await bench.register({ maxInflight: 1 });
    const [unknown] = await abort({ requestIds: ['job/g1/0'] });
    expect(unknown).toEqual({ requestId: 'job/g1/0', outcome: 'not-found' });
    await bench.submit(2);
    expect((await bench.counts()).requests).toMatchObject({ dropped: 2, pending: 2 });
    await bench.startWorker();
    await bench.running(1);
    await expect.poll(async () => (await bench.inflight()).waiters).toBe(1);
    const results = await abort({ groupId: 'g0', job: JOB });
    expect(results.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted']);
    await expect.poll(() => bench.inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });
    expect((await bench.counts()).requests).toMatchObject({ submitted: 4, dropped: 4 });
  });

  it('is done although the replica dies after recording it, or the worker is lost', async () => {
    await bench.register();
    await bench.submit(1);
    await bench.startWorker();
    await bench.running(2);
    setFailpoints('coordinator.abort.after-intent=throw@1');
    await expect(abort({ job: JOB })).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect.poll(async () => (await bench.counts()).requests).toMatchObject({ dropped: 2 });
    await expect.poll(() => bench.inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });

    const { workerEpoch } = await bench.client.call(bench.pool, 'worker.register', {
      workerId: 'mute',
      registrationId: 'm',
    });
    await bench.closeWorkers();
    await bench.client.call(bench.pool, 'round.submit', {
      job: JOB,
      roundId: 'r1',
      trainerEpoch: (await bench.counts()).trainerEpoch,
      groups: [{ groupId: 'g9', samples: 1, maxTokens: 10, prompt: { text: 'x' } }],
    });
    const fence = { workerId: 'mute', workerEpoch };
    expect(
      (await bench.client.call(bench.pool, 'request.claim', { claimId: 'c', ...fence, max: 1 })).claims,
    ).toHaveLength(1);
    expect((await abort({ requestIds: ['job/g9/0'], waitMs: 50 }))[0]).toMatchObject({ outcome: 'aborting' });
    await bench.client.call(bench.pool, 'worker.deregister', fence);
    expect((await abort({ requestIds: ['job/g9/0'] }))[0]).toMatchObject({ outcome: 'aborted', tokenCount: 0 });
  });
});

describe('request.abort of callers that only route', () => {
  it('repeats the command to the holder until it releases, by session, request, worker, server or all', async () => {
    await bench.register();
    const { workerEpoch } = await bench.client.call(bench.pool, 'worker.register', {
      workerId: 'loop',
      registrationId: 'l',
    });
    const commands: AbortAttemptsCommand[] = [];
    bench.client.messaging.subscribe(workerCommandSubject(bench.pool, 'loop', 'abort'), (body) => {
      commands.push(body as unknown as AbortAttemptsCommand);
    });
    const selectors = [{ sessionId: 's' }, { requestIds: ['traj/1'] }, { workerId: 'loop' }, { serverId: 's1' }];
    for (const [index, selector] of [...selectors, { all: true as const }].entries()) {
      commands.length = 0;
      const wanted = { requestId: 'traj/1', sessionId: 's', workerId: 'loop', workerEpoch };
      const { leaseId } = await bench.client.call(bench.pool, 'lb.acquire', { acquireId: `q${index}`, ...wanted });
      const body = { abortId: `route-${index}`, ...selector };
      const first = await bench.client.call(bench.pool, 'request.abort', body);
      expect(first.results).toEqual([{ requestId: 'traj/1', leaseId, outcome: 'aborting' }]);
      await expect.poll(() => commands.length).toBeGreaterThanOrEqual(2);
      expect(commands[0]).toEqual({
        workerEpoch,
        cause: 'abort',
        attempts: [],
        leases: [{ leaseId, requestId: 'traj/1' }],
      });
      await bench.client.call(bench.pool, 'lb.release', { leaseId, outcome: 'aborted' });
      const after = await bench.client.call(bench.pool, 'request.abort', { ...body, waitMs: 5_000 });
      expect(after.results).toEqual([{ requestId: 'traj/1', leaseId, outcome: 'aborted' }]);
    }
  });

  it('ends waiting acquires, and refuses later ones only if the abort asks for it', async () => {
    await bench.register({ maxInflight: 1 });
    const worker = { workerId: 'loop', registrationId: 'l' };
    const { workerEpoch } = await bench.client.call(bench.pool, 'worker.register', worker);
    const acquire = (acquireId: string, more: object = {}) =>
      bench.client.call(bench.pool, 'lb.acquire', {
        acquireId,
        requestId: `traj/${acquireId}`,
        workerId: 'loop',
        workerEpoch,
        ...more,
      });
    const lease = await acquire('first');
    const selectors = [{ sessionId: 's' }, { requestIds: ['traj/2'] }, { workerId: 'loop' }, { all: true as const }];
    for (const [index, selector] of selectors.entries()) {
      const waiting = acquire(`${index + 1}`, { requestId: 'traj/2', sessionId: 's', waitMs: 20_000 });
      const refused = expect(waiting).rejects.toMatchObject({ code: 'ABORTED', retryable: false });
      await expect.poll(async () => (await bench.inflight()).waiters).toBe(1);
      const body = { abortId: `parked-${index}`, ...selector };
      const { results } = await bench.client.call(bench.pool, 'request.abort', body);
      await refused;
      expect(results).toContainEqual({ requestId: 'traj/2', outcome: 'aborted' });
      await expect(acquire(`${index + 1}`, { waitMs: 20_000 })).rejects.toMatchObject({ code: 'ABORTED' });
    }
    await bench.client.call(bench.pool, 'lb.release', { leaseId: lease.leaseId, outcome: 'aborted' });
    // A known request may come again, also a request between two turns. Unknown ones are refused only on demand.
    const next = await acquire('next', { requestId: 'traj/2' });
    await bench.client.call(bench.pool, 'lb.release', { leaseId: next.leaseId, outcome: 'finished' });
    const early = { requestIds: ['traj/late'] };
    const unknown = [{ requestId: 'traj/late', outcome: 'not-found' }];
    const between = await bench.client.call(bench.pool, 'request.abort', { abortId: 'between', ...early });
    expect(between.results).toEqual(unknown);
    const turn = await acquire('turn', { requestId: 'traj/late' });
    await bench.client.call(bench.pool, 'lb.release', { leaseId: turn.leaseId, outcome: 'finished' });
    const refusing = { abortId: 'early', ...early, refuseAcquiresMs: 600_000 };
    expect((await bench.client.call(bench.pool, 'request.abort', refusing)).results).toEqual(unknown);
    await expect(acquire('late')).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('refuses an empty list, two selectors, no selector, and the id of another abort', async () => {
    const refused = (body: object, field: string) =>
      expect(bench.client.call(bench.pool, 'request.abort', { abortId: 'bad', ...body })).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
        field,
      });
    await refused({ requestIds: [] }, 'requestIds');
    await refused({ requestIds: ['a\nb'] }, 'requestIds');
    await refused({ requestIds: Array.from({ length: 129 }, (_, index) => `r${index}`) }, 'requestIds');
    await refused({ requestIds: ['a'], all: true }, 'all');
    await refused({ workerId: 'w', serverId: 's' }, 'serverId');
    await refused({ workerId: 'w', job: 'j' }, 'job');
    await refused({ groupId: 'g' }, 'job');
    await refused({}, 'requestIds');
    await refused({ all: false }, 'all');
    await refused({ all: true, waitMs: 30_001 }, 'waitMs');
    await refused({ all: true, refuseAcquiresMs: 1_000 }, 'refuseAcquiresMs');
    await refused({ requestIds: ['a'], refuseAcquiresMs: 600_001 }, 'refuseAcquiresMs');
    await bench.client.call(bench.pool, 'request.abort', { abortId: 'bad', job: 'nobody' });
    await refused({ all: true }, 'abortId');
  });
});

describe('a holder that lives and does not confirm', () => {
  it('loses its requests with the epoch of the server, and the answer is final', async () => {
    const impatient = await ServiceBench.open({ abortDeadlineMs: 1_000 });
    const { client } = impatient;
    await impatient.begin();
    const { pool } = impatient;
    // The server has an id that services encode, because one service asks another to fence the server.
    await impatient.register({ serverId: 'a/b %' });
    await impatient.submit(1, 1);
    const registration = { workerId: 'deaf', registrationId: 'd', ttlMs: 60_000 };
    const { workerEpoch } = await client.call(pool, 'worker.register', registration);
    const holder = { workerId: 'deaf', workerEpoch };
    await client.call(pool, 'request.claim', { claimId: 'c', max: 1, ...holder });
    const wanted = { requestId: 'job/g0/0', ...holder };
    await client.call(pool, 'lb.acquire', { acquireId: 'held', ...wanted });
    await client.call(pool, 'lb.acquire', { acquireId: 'routed', ...wanted, requestId: 'traj/1' });
    const look = () => client.call(pool, 'request.abort', { abortId: 'a', all: true, waitMs: 200 });
    expect((await look()).results.map(({ outcome }) => outcome)).toEqual(['aborting', 'aborting']);
    await expect
      .poll(async () => (await look()).results)
      .toMatchObject([
        { requestId: 'job/g0/0', outcome: 'aborted', fenced: true },
        { requestId: 'traj/1', outcome: 'aborted', fenced: true },
      ]);
    const { servers } = await client.call(pool, 'server.list', {});
    expect(servers).toMatchObject([{ serverId: 'a/b %', state: 'failed', inflight: 0 }]);
    expect(await impatient.counts()).toMatchObject({ requests: { dropped: 1 } });
    // The late release of the holder changes nothing.
    expect(await client.call(pool, 'lb.release', { acquireId: 'held', outcome: 'aborted' })).toMatchObject({
      released: false,
    });
    await impatient.end();
    await impatient.close();
  });
});

describe('a stream that the worker gives up on', () => {
  it('is stopped on the engine before its lease is given back, though its connection seems to live on', async () => {
    await bench.register();
    await inject(bench.engine.url, { kind: 'stall-unnoticed', afterTokens: 5 });
    await inject(bench.engine.url, { kind: 'abort-500', count: 3 });
    const inEngine: Promise<boolean>[] = [];
    let attempt: AttemptId | undefined;
    bench.client.messaging.subscribe(buildSubject(bench.pool, 'request.save-many'), (body) => {
      attempt ??= (body as unknown as SaveManyRequest).saves[0]!.attempt;
    });
    bench.client.messaging.subscribe(buildSubject(bench.pool, 'lb.release'), () => {
      const id = engineRequestId('job/g0/0', attempt!);
      inEngine.push(bench.engineState().then((state) => liveRows(state).some((row) => row.id === id)));
    });
    await bench.submit(1, 1);
    await bench.startWorker({ engineStallTimeoutMs: 200, engineFailurePauseMs: 0, streamInterval: 1 });
    await expect.poll(() => inEngine.length).toBe(1);
    expect(await Promise.all(inEngine)).toEqual([false]);
    // The request is resumed from its tokens.
    await bench.running(1);
    await abort({ all: true });
  });
});

describe("a worker's own end", () => {
  it('stops its requests on the engine and gives each lease and each waiting acquire back once', async () => {
    await bench.register({ maxInflight: 1 });
    await bench.submit(1);
    await bench.startWorker();
    await bench.running(1);
    await expect.poll(async () => (await bench.inflight()).waiters).toBe(1);
    await bench.closeWorkers();
    expect(await bench.inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });
    // A waiting claim may have got one of the requests; it is returned when the epoch ends.
    await expect
      .poll(async () => (await bench.counts()).requests)
      .toMatchObject({ pending: 2, running: 0, claimed: 0 });
  });

  it('stops its requests also when it has lost its epoch', async () => {
    await bench.register();
    await bench.submit(1);
    await bench.startWorker({ workerTtlMs: 900 });
    await bench.running(2);
    // Another process registers under the worker's name, as after a partition.
    await bench.client.call(bench.pool, 'worker.register', { workerId: 'w1', registrationId: 'another' });
    await bench.client.call(bench.pool, 'request.abort', { abortId: 'lost', job: JOB });
    await expect.poll(() => bench.inflight()).toEqual({ engine: 0, leases: 0, waiters: 0 });
    await expect.poll(async () => (await bench.counts()).requests).toMatchObject({ dropped: 2 });
  });
});
