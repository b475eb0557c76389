import { createHash } from 'node:crypto';
import { request } from 'node:http';
import {
  type ErrorCode,
  getHttpStatus,
  isBroomwagonError,
  LIMITS,
  type OperationName,
  OPERATIONS,
  type RoundResultsReply,
  TRAINER_OPERATIONS,
  type WireError,
} from '@broomwagon/contracts';
import { connectNats, validate } from '@broomwagon/messaging';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { ProtocolCheck, requestRaw, testNatsUrl, testRedisUrl } from '@broomwagon/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { Gateway, type Reply } from '../../../../test/system/gateway';
import { MessageFuzzer, messageRequests } from '../../../../test/system/message-fuzzer';
import { useGateway } from '../../../../test/system/gateway-bench';

type Body = Record<string, unknown>;
const POLICY = { name: 'resume', overProvision: 1 };
const ROUND = { job: 'job', roundId: 'r1' };
const OPERATION_NAMES = [...TRAINER_OPERATIONS.keys()];
/** Bodies of each operation that its class refuses. */
const WRONG_BODIES = 12;

const system = useGateway(16, { dialect: 'vllm', tokens: 20, speed: 20 });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

const buildPath = (operation: string, pool = bench.pool) => `/rounds/v1/${pool}/${operation}`;
const call = (operation: string, body: Body | string): Promise<Reply> => gateway.post(buildPath(operation), body);
async function fetchBody(operation: string, body: Body): Promise<Body> {
  const reply = await call(operation, body);
  expect(reply).toMatchObject({ status: 200 });
  return reply.body as Body;
}

describe('each operation of trainers', () => {
  it('answers right input with the reply that its schema describes', async () => {
    await bench.startWorker();
    const check = new ProtocolCheck();
    const answered = new Set<string>();
    const step = async (operation: OperationName, body: Body, code?: ErrorCode): Promise<Body> => {
      const subject = `rollout.v1.${bench.pool}.${operation}`;
      const reply = await call(operation, body);
      expect([operation, reply.status, reply.body.error?.code]).toEqual([
        operation,
        code === undefined ? 200 : getHttpStatus(code),
        code,
      ]);
      check.replied(check.sent(subject, body)!, reply.body);
      answered.add(operation);
      return reply.body as Body;
    };
    const job = 'job';
    const { kind, ...plan } = await step('round.next', { job, groupsPerStep: 2, remainingGroups: 2, policy: POLICY });
    const { trainerEpoch } = await step('round.open', { ...ROUND, ...plan, stamp: undefined, kind, policy: POLICY });
    const groups = ['g0', 'g1'].map((groupId) => ({ groupId, samples: 1, maxTokens: 50, prompt: { text: groupId } }));
    const trainer = { ...ROUND, trainerEpoch };
    await step('round.submit', { ...trainer, groups });
    await step('round.status', trainer);
    let cursor: unknown;
    for (let isComplete = false; !isComplete;) {
      const page = await step('round.results', { ...trainer, cursor, waitMs: 5_000 });
      ({ cursor } = page);
      isComplete = page.complete as boolean;
    }
    await step('request.segments', { requestId: 'job/g0/0' });
    await step('round.reward', { ...trainer, groups: [{ groupId: 'g0', rewards: [1] }] });
    await step('round.close', { ...trainer, cursor });
    await step('round.list', { job });
    await step('group.list', ROUND);
    await step('round.cancel', { ...trainer, mode: 'drop' }, 'ROUND_CLOSED');
    await step('request.abort', { abortId: 'a', requestIds: ['job/g0/0'] });
    const data = Buffer.from('{}').toString('base64');
    const chunk = { job, groupId: 'g2', name: 'prompt', chunkIndex: 0, chunkCount: 1, data };
    const { ref } = await step('payload.put', chunk);
    await step('payload.stat', { ref });
    expect((await step('payload.get', { ref })).data).toBe(data);
    expect(await step('payload.get-many', { refs: [ref] })).toMatchObject({ payloads: [{ data }] });
    for (const operation of ['job.status', 'longtail.stats', 'longtail.list', 'job.snapshots', 'job.ledger'] as const) {
      await step(operation, { job });
    }
    await step('job.list', {});
    await step('job.snapshot', { job, trainerEpoch, tag: 't' });
    await step('job.restore', { job, trainerEpoch, tag: 't' });
    const sync = { syncId: 'y' };
    await step('weights.begin', { ...sync, version: 1, mode: 'wait', waitMs: 100 });
    await step('weights.status', sync);
    await step('weights.commit', sync);
    await step('weights.rollback', sync, 'WEIGHT_SYNC_ENDED');
    const { trainerEpoch: taken } = await step('round.takeover', { job, takeoverId: 'k' });
    await step('job.reconcile', { job, trainerEpoch: taken, takeoverId: 'k', groupIds: ['g0', 'new'] });
    await step('longtail.drop', { job, trainerEpoch: taken, groupIds: ['g0'], reason: 'test' });
    await step('longtail.requeue', { job, requests: [{ requestId: 'job/g0/0', attempt: '1-a' }] });
    await step('job.configure', { job, quota: { weight: 2 } });
    await step('job.delete', { job, force: true });
    expect(check.mismatches).toEqual([]);
    expect(OPERATION_NAMES.filter((operation) => !answered.has(operation))).toEqual([]);
  });

  it('answers wrong and hostile input as on NATS', async () => {
    const connection = await connectNats({ url: testNatsUrl() });
    const fuzzer = new MessageFuzzer(7, messageRequests());
    const overNats = async (operation: string, body: string): Promise<WireError | undefined> => {
      const message = await requestRaw(connection.nats, `rollout.v1.${bench.pool}.${operation}`, body);
      return message.json<{ error?: WireError }>().error;
    };
    for (const operation of OPERATION_NAMES) {
      const bodies = ['null', '[]', '{', '{"a":', '{"__proto__": {"job": "j"}}', `{"a":${'['.repeat(5_000)}`];
      for (let made = 0; made < 1_000 && bodies.length < WRONG_BODIES; made += 1) {
        const body = fuzzer.message(operation);
        if (body.length < LIMITS.bodyBytes && isRefused(operation, body)) bodies.push(body);
      }
      expect(bodies).toHaveLength(WRONG_BODIES);
      for (const body of bodies) {
        const expected = await overNats(operation, body);
        const { status, body: reply } = await call(operation, body);
        const isText = expected?.code === 'MALFORMED_JSON';
        expect([operation, body, status, reply.error]).toEqual([
          operation,
          body,
          getHttpStatus(expected!.code),
          isText ? { ...expected, message: expect.any(String) as string } : expected,
        ]);
      }
    }
    const large = await call('round.submit', JSON.stringify({ job: 'x'.repeat(LIMITS.bodyBytes) }));
    expect([large.status, large.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    // These bodies are right, and the state causes the errors.
    for (const [operation, body] of [
      ['round.status', { job: 'none' }],
      ['round.takeover', { job: 'none', takeoverId: 'k' }],
      ['payload.stat', { ref: `redis~${bench.pool}~j~o~n` }],
      ['payload.get', { ref: 'redis~another~j~o~n' }],
    ] as const) {
      const expected = await overNats(operation, JSON.stringify(body));
      const { status, body: reply } = await call(operation, body);
      expect([status, reply.error]).toEqual([getHttpStatus(expected!.code), expected]);
    }
    await connection.close();
  });

  it('needs a key with its role, and the pool of the gateway', async () => {
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, bench.prefix);
    const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
    const statuses = async (operation: string, headers: Record<string, string>, pool?: string) =>
      (await guarded.post(buildPath(operation, pool), { unknown: 1 }, headers)).status;
    const createKey = async (role: 'client' | 'trainer' | 'viewer' | 'operator' | 'admin', pools?: string[]) => ({
      authorization: `Bearer ${(await store.create({ name: 'a', role, pools })).token}`,
    });
    const [client, trainer, viewer, admin] = [
      await createKey('client'),
      await createKey('trainer', [bench.pool]),
      await createKey('viewer'),
      await createKey('admin'),
    ];
    for (const [operation, role] of TRAINER_OPERATIONS) {
      expect([operation, await statuses(operation, {})]).toEqual([operation, 401]);
      expect([operation, await statuses(operation, client)]).toEqual([operation, 403]);
      expect([operation, await statuses(operation, viewer)]).toEqual([operation, 403]);
      expect([operation, await statuses(operation, trainer)]).toEqual([operation, role === 'trainer' ? 400 : 403]);
      expect([operation, await statuses(operation, admin)]).toEqual([operation, 400]);
    }
    const roles = OPERATION_NAMES.filter((operation) => TRAINER_OPERATIONS.get(operation) === 'admin');
    expect(roles.sort()).toEqual(['job.configure', 'job.delete']);
    expect(await statuses('round.list', await createKey('admin', ['another']))).toBe(403);
    const elsewhere = await guarded.post(buildPath('round.list', 'another'), { job: 'j' }, admin);
    expect([elsewhere.status, elsewhere.body.error]).toMatchObject([404, { code: 'POOL_NOT_FOUND', field: 'pool' }]);
    const unknown = await guarded.post(buildPath('lb.acquire'), {}, admin);
    const notFound = { code: 'ROUTE_NOT_FOUND', message: 'There is no such path', retryable: false };
    expect([unknown.status, unknown.body]).toEqual([404, { error: notFound }]);
    await guarded.close();
    redis.disconnect();
  });
});

describe('payloads', () => {
  const put = (query: Body, body: Buffer) =>
    fetch(`${gateway.url}${buildPath('payload.put')}?${new URLSearchParams(query as never).toString()}`, {
      method: 'PUT',
      body,
    });
  const get = (query: Body) =>
    fetch(`${gateway.url}${buildPath('payload.get')}?${new URLSearchParams(query as never).toString()}`);
  const readErrorCode = async (response: Response) =>
    [response.status, ((await response.json()) as { error?: WireError }).error?.code] as const;
  const owner = { job: 'job', groupId: 'a/b ü', name: 'prompt' };

  it.each([0, 1, 262_144, 3_000_001])('of %i bytes are stored and returned as bytes', async (bytes) => {
    const body = Buffer.alloc(bytes, 'payload ');
    const { ref } = (await (await put(owner, body)).json()) as { ref: string };
    const answer = await get({ ref });
    expect([answer.status, answer.headers.get('content-length')]).toEqual([200, String(bytes)]);
    const digest = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');
    expect(digest(new Uint8Array(await answer.arrayBuffer()))).toBe(digest(body));
    expect((await call('payload.stat', { ref })).body.bytes).toBe(bytes);
    expect(await readErrorCode(await put(owner, Buffer.from('other')))).toEqual([409, 'PAYLOAD_EXISTS']);
  });

  it('that are wrong, too large or broken off are refused', async () => {
    const body = Buffer.from('{}');
    expect(await readErrorCode(await put({ ...owner, chunkCount: 1 }, body))).toEqual([400, 'VALIDATION_FAILED']);
    expect(await readErrorCode(await put({ ...owner, requestId: 'job/g/0' }, body))).toEqual([
      400,
      'VALIDATION_FAILED',
    ]);
    expect(await readErrorCode(await put({ job: 'job' }, body))).toEqual([400, 'VALIDATION_FAILED']);
    expect(await readErrorCode(await get({ ref: 'redis~another~j~o~n' }))).toEqual([409, 'PAYLOAD_FOREIGN']);
    expect(await readErrorCode(await get({}))).toEqual([400, 'VALIDATION_FAILED']);
    const fetchAnswer = (headers: Record<string, string | number>, part?: Buffer) =>
      new Promise<{ status?: number; text: string }>((resolve) => {
        const path = `${buildPath('payload.put')}?${new URLSearchParams({ job: 'job', groupId: 'g', name: 'p' }).toString()}`;
        const sent = request(`${gateway.url}${path}`, { method: 'PUT', headers }, (response) => {
          response.setEncoding('utf8').once('data', (text: string) => {
            resolve({ status: response.statusCode, text });
            sent.destroy();
          });
        });
        sent.on('error', () => undefined);
        if (part === undefined) sent.flushHeaders();
        else sent.write(part, () => sent.destroy());
        sent.once('close', () => resolve({ text: '' }));
      });
    const large = await fetchAnswer({ 'content-length': 64 * 1024 * 1024 + 1 });
    expect([large.status, large.text]).toEqual([413, expect.stringContaining('PAYLOAD_TOO_LARGE')]);
    const unmeasured = await fetchAnswer({ 'transfer-encoding': 'chunked' });
    expect([unmeasured.status, unmeasured.text]).toEqual([400, expect.stringContaining('Content-Length')]);
    await fetchAnswer({ 'content-length': 600_000 }, Buffer.alloc(300_000));
    expect((await call('payload.stat', { ref: `redis~${bench.pool}~job~g~p` })).body.error.code).toMatch(
      /^PAYLOAD_(INCOMPLETE|NOT_FOUND)$/,
    );
    // A client sends the whole payload again.
    expect((await put({ job: 'job', groupId: 'g', name: 'p' }, Buffer.alloc(600_000))).status).toBe(200);
  });
});

describe('results as a stream', () => {
  const read = (cursor?: string, more: Record<string, string> = {}) =>
    fetch(
      `${gateway.url}${buildPath('round.results')}?${new URLSearchParams({
        ...ROUND,
        ...(cursor !== undefined && { cursor }),
        ...more,
      }).toString()}`,
    );
  type Line = Partial<RoundResultsReply> & { groupId?: string; error?: WireError };
  const readLines = async (response: Response): Promise<Line[]> =>
    (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);

  it('have a line for each group, continue from a cursor, and end with the round', async () => {
    const trainerEpoch = await bench.submit(4, 1);
    const first = await read(undefined, { limit: '1' });
    await bench.startWorker();
    const lines = await readLines(first);
    const ids = lines.flatMap(({ groupId }) => groupId ?? []);
    expect(ids.toSorted()).toEqual(['g0', 'g1', 'g2', 'g3']);
    const { complete, cursor, state } = lines.at(-1)!;
    expect([complete, state]).toEqual([true, 'completed']);
    const middle = lines.findIndex(({ groupId }) => groupId === ids[1]) + 1;
    const rest = await readLines(await read(lines[middle]!.cursor));
    expect(rest.flatMap(({ groupId }) => groupId ?? [])).toEqual(ids.slice(2));
    expect(rest.at(-1)!.cursor).toBe(cursor);
    const closing = { ...ROUND, trainerEpoch, cursor };
    expect(await fetchBody('round.close', closing)).toMatchObject({ trainedGroups: 4 });
  });

  it('end with the error of the round, and begin with none', async () => {
    const trainerEpoch = await bench.submit(1, 1);
    const stream = await read(undefined, { waitMs: '200' });
    await fetchBody('round.cancel', { ...ROUND, trainerEpoch, mode: 'drop' });
    const lines = await readLines(stream);
    expect(lines[0]).toMatchObject({ complete: false, state: 'open' });
    expect(lines.at(-1)!.error).toMatchObject({ code: 'ROUND_CANCELLED', retryable: false });
    const refused = await read();
    expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: 'ROUND_CANCELLED' } }]);
    expect((await read('x')).status).toBe(400);
    expect((await read(undefined, { waitMs: 'x' })).status).toBe(400);
    expect((await read(undefined, { unknown: '1' })).status).toBe(400);
  });

  it('end when their client has disconnected', async () => {
    const trainerEpoch = await bench.submit(1, 1);
    const abort = new AbortController();
    const query = new URLSearchParams({ ...ROUND, waitMs: '100' }).toString();
    const gone = await fetch(`${gateway.url}${buildPath('round.results')}?${query}`, { signal: abort.signal });
    expect(gone.status).toBe(200);
    abort.abort();
    const closed = /^broomwagon_gateway_requests_total{route=".*round\.results",status="200".* 1$/m;
    await expect.poll(async () => String((await gateway.get('/metrics')).body)).toMatch(closed);
    // A second stream measures the time: each of its lines is one call, and the first stream makes none.
    const calls = () => bench.metric('messages_handled_total{subject="rollout.v1.*.round.results"');
    const live = (await read(undefined, { waitMs: '100' })).body!.getReader();
    await live.read();
    const before = await calls();
    expect(before).toBeGreaterThan(1);
    let lines = 0;
    while (lines < 16)
      lines +=
        Buffer.from((await live.read()).value!)
          .toString()
          .split('\n').length - 1;
    expect((await calls()) - before).toBeLessThan(lines + 10);
    await live.cancel();
    await fetchBody('round.cancel', { ...ROUND, trainerEpoch, mode: 'drop' });
  });
});

/** The class of the request refuses the body. */
function isRefused(operation: OperationName, text: string): boolean {
  try {
    validate(OPERATIONS[operation].request as new () => object, JSON.parse(text || '{}'));
    return false;
  } catch (error) {
    return isBroomwagonError(error, 'VALIDATION_FAILED');
  }
}
