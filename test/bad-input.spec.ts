import type { Epoch, WireError } from '@broomwagon/contracts';
import { connectNats, type MessagingConnection } from '@broomwagon/messaging';
import { requestRaw, testNatsUrl, waitUntil } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TestSystem } from './system/test-system';
import { TestWorker } from './system/test-worker';

const POLICY = { name: 'resume', overProvision: 1.5 } as const;
const group = (groupId: string) => ({ groupId, samples: 1, maxTokens: 100, prompt: { text: groupId } });

describe('a message that is wrong', () => {
  let system: TestSystem;
  let connection: MessagingConnection;
  let round: { job: string; roundId: string; trainerEpoch: Epoch };
  let worker: { workerId: string; workerEpoch: Epoch };
  let before: Record<string, string>;

  beforeAll(async () => {
    system = await TestSystem.start({ workers: 0, engines: 0, environment: { EVENTS_RELAY: 'false' } });
    connection = await connectNats({ url: testNatsUrl() });
    worker = (await TestWorker.register(system, 'w1')).identity;
    const opened = await system.openRound('job', { groupsPerStep: 2, groups: ['a', 'b'].map(group), policy: POLICY });
    round = { job: 'job', roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
    // A new generation has its counts checked once, in the background.
    await waitUntil(
      async () => 'countsOf' in (await system.redis.hash('meta')) && !(await system.redis.exists('jobs:miscounted')),
      { what: 'the counts to be checked', timeoutMs: 30_000 },
    );
  });
  beforeEach(async () => {
    before = await system.redis.dump();
  });
  afterEach(async () => {
    expect(await system.redis.dump()).toEqual(before);
  });
  afterAll(async () => {
    await connection?.close();
    await system?.stop();
  });

  /** The error the service answers, as any client sees it. */
  async function requestError(operation: string, body: unknown): Promise<WireError> {
    const bytes = typeof body === 'string' ? body : JSON.stringify(body);
    const reply = await requestRaw(connection.nats, `rollout.v1.${system.pool}.${operation}`, bytes);
    const { error } = reply.json<{ error: WireError }>();
    expect(reply.headers?.get('Nats-Service-Error-Code')).toBe(error.code);
    return error;
  }
  const acquire = (changes: object) => ({ acquireId: 'a1', requestId: 'r1', ...worker, ...changes });
  const plan = (changes: object) => ({ job: 'j2', groupsPerStep: 2, remainingGroups: 4, policy: POLICY, ...changes });
  const open = (changes: object) => ({
    job: 'j2',
    roundId: 'r',
    planId: '1-short-2-2-0',
    step: 1,
    kind: 'short',
    neededGroups: 2,
    newGroups: 2,
    takeGroups: 0,
    policy: POLICY,
    weightVersion: 0,
    ...changes,
  });
  const submit = (groups: unknown) => ({ ...round, groups });
  const long = 'x'.repeat(10_000);

  it.each<[string, string, () => unknown, Partial<WireError>]>([
    ['no JSON', 'lb.acquire', () => '{"acquireId": "a1", ', { code: 'MALFORMED_JSON' }],
    ['no JSON', 'round.submit', () => 'hello', { code: 'MALFORMED_JSON' }],
    ['a list for an object', 'round.open', () => '[1, 2]', { code: 'MALFORMED_JSON' }],
    [
      'an unknown field',
      'lb.acquire',
      () => acquire({ colour: 'red' }),
      { code: 'VALIDATION_FAILED', field: 'colour' },
    ],
    ['a missing field', 'lb.acquire', () => acquire({ acquireId: undefined }), { field: 'acquireId' }],
    ['a wrong type', 'lb.acquire', () => acquire({ priority: 'high' }), { field: 'priority' }],
    ['an id with a control character', 'lb.acquire', () => acquire({ acquireId: 'a\n1' }), { field: 'acquireId' }],
    [
      'a worker id that is no subject token',
      'worker.register',
      () => ({ workerId: 'a.b', registrationId: 'r' }),
      { field: 'workerId' },
    ],
    ['an id of 10 kB', 'lb.acquire', () => acquire({ requestId: long }), { field: 'requestId' }],
    ['an unknown worker', 'lb.acquire', () => acquire({ workerId: 'w2' }), { code: 'WORKER_NOT_FOUND' }],
    [
      'an id that is a number',
      'lb.acquire',
      () => acquire({ requestId: 12345 }),
      { message: 'requestId: must be a string' },
    ],
    ['a job id of 10 kB', 'round.next', () => plan({ job: long }), { field: 'job' }],
    ['an empty job id', 'job.status', () => ({ job: '' }), { field: 'job' }],
    [
      'over-provision below 1',
      'round.next',
      () => plan({ policy: { ...POLICY, overProvision: 0.9 } }),
      { field: 'policy.overProvision' },
    ],
    [
      'over-provision below 1',
      'round.open',
      () => open({ policy: { ...POLICY, overProvision: 0 } }),
      { field: 'policy.overProvision' },
    ],
    [
      'an unknown tail policy',
      'round.open',
      () => open({ policy: { name: 'hope', overProvision: 1 } }),
      { field: 'policy.name' },
    ],
    ['fewer groups than needed', 'round.open', () => open({ newGroups: 1 }), { field: 'neededGroups' }],
    ['groups that the queue does not have', 'round.open', () => open({ takeGroups: 5 }), { code: 'PLAN_STALE' }],
    [
      'another round while one is open',
      'round.open',
      () => open({ job: 'job', trainerEpoch: round.trainerEpoch }),
      { code: 'ROUND_CONFLICT' },
    ],
    [
      'more groups than planned',
      'round.submit',
      () => submit(['c', 'd', 'e'].map(group)),
      { code: 'VALIDATION_FAILED' },
    ],
    [
      'a group with other contents',
      'round.submit',
      () => submit([{ ...group('a'), samples: 7 }]),
      { code: 'DUPLICATE_GROUP' },
    ],
    ['a group twice in a page', 'round.submit', () => submit([group('c'), group('c')]), { code: 'VALIDATION_FAILED' }],
    [
      'a prompt of two kinds',
      'round.submit',
      () => submit([{ ...group('c'), prompt: { text: 'c', promptTokenIds: [1] } }]),
      { code: 'VALIDATION_FAILED' },
    ],
    [
      'an unknown sampling parameter',
      'round.submit',
      () => submit([{ ...group('c'), sampling: { temprature: 1 } }]),
      { field: 'groups.0.sampling.temprature' },
    ],
    [
      'a sampling parameter of the wrong type',
      'round.submit',
      () => submit([{ ...group('c'), sampling: { topK: 1.5 } }]),
      { field: 'groups.0.sampling.topK' },
    ],
    [
      'sampling parameters over 4 kB',
      'round.submit',
      () => submit([{ ...group('c'), sampling: { stop: ['x'.repeat(5_000)] } }]),
      { field: 'groups.0.sampling' },
    ],
    [
      'an inline prompt over 32 kB',
      'round.submit',
      () => submit([{ ...group('c'), prompt: { text: 'x'.repeat(40_000) } }]),
      { code: 'PAYLOAD_TOO_LARGE' },
    ],
    [
      'a body over 1 MB',
      'round.submit',
      () => ({ ...submit([]), padding: 'x'.repeat(1_010_000) }),
      { code: 'PAYLOAD_TOO_LARGE' },
    ],
    [
      'an old trainer epoch',
      'round.submit',
      () => ({ ...submit([group('c')]), trainerEpoch: 'e99' }),
      { code: 'FENCED' },
    ],
    [
      'a chunk over its limit',
      'payload.put',
      () => ({ job: 'job', groupId: 'o', name: 'n', chunkIndex: 0, chunkCount: 1, data: 'A'.repeat(400_000) }),
      { field: 'data' },
    ],
    [
      'a payload over 64 MiB',
      'payload.put',
      () => ({ job: 'job', groupId: 'o', name: 'n', chunkIndex: 0, chunkCount: 257, data: 'AAAA' }),
      { field: 'chunkCount' },
    ],
    [
      'a close before the end',
      'round.close',
      () => ({ ...round, cursor: 'a.0.0.a.' }),
      { code: 'ROUND_NOT_COMPLETED', retryable: true },
    ],
    [
      'an engine without an address',
      'server.register',
      () => ({ serverId: 's1', endpoint: 'nowhere', dialect: 'vllm', maxInflight: 1 }),
      { field: 'endpoint' },
    ],
    [
      'an unknown dialect',
      'server.register',
      () => ({ serverId: 's1', endpoint: 'http://127.0.0.1:1', dialect: 'tgi', maxInflight: 1 }),
      { field: 'dialect' },
    ],
    [
      'a request nobody knows',
      'request.complete',
      () => ({ requestId: 'job/x/0', attempt: '1-a', ...worker, finishReason: 'stop' }),
      { code: 'REQUEST_NOT_FOUND' },
    ],
  ])('%s (%s) is answered with a typed error and changes nothing', async (_, operation, body, expected) => {
    const error = await requestError(operation, body());
    expect(error).toMatchObject({ code: 'VALIDATION_FAILED', retryable: false, ...expected });
    expect(error.message.length).toBeLessThan(1_000);
  });

  it('gets an error at once when there is no server', async () => {
    const startedMs = performance.now();
    expect(await requestError('lb.acquire', acquire({}))).toMatchObject({
      code: 'NO_SERVER_AVAILABLE',
      retryable: true,
    });
    // Who waits without a limit of its own waits for 30 seconds.
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  it('gets an error after waitMs when there is no server', async () => {
    const startedMs = performance.now();
    const { code, retryable } = await requestError('lb.acquire', acquire({ acquireId: 'a2', waitMs: 400 }));
    expect(retryable).toBe(true);
    expect(code).toBe('NO_SERVER_AVAILABLE');
    expect(performance.now() - startedMs).toBeGreaterThan(390);
  });
});
