import { createConfig, lint } from '@redocly/openapi-core';
import { auditSubject, includesRole, ROLES, type Epoch, type Route, ROUTES } from '@broomwagon/contracts';
import { CredentialStore, connectRedis, hashOfToken } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminApi, type Answer, type Fields } from './system/admin-api';
import { fillPool } from './system/filled-pool';
import { RedisView } from './system/redis-view';
import { ServiceBench } from './system/service-bench';

const formatRoute = ({ method, path }: Route) => `${method} ${path}`;

let bench: ServiceBench;
let api: AdminApi;
let tokens: [who: string, token: string][];
let workerEpoch: Epoch;
let serverEpoch: Epoch;

beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent', eventsRelay: false }, 4);
  api = await AdminApi.start(bench.prefix);
  ({ workerEpoch, serverEpoch } = await fillPool(bench));
  tokens = [
    ['client', await api.createToken('client', [bench.pool])],
    ['trainer', await api.createToken('trainer', [bench.pool])],
    ['viewer', await api.createToken('viewer', [bench.pool])],
    ['operator', await api.createToken('operator', [bench.pool])],
    ['admin of another pool', await api.createToken('admin', ['another'])],
  ];
});
afterAll(async () => {
  await api?.close();
  await bench?.close();
});

/** Bodies that the routes accept, without the fields that {@link buildIds} gives. */
const RIGHT: Record<string, () => Fields> = {
  'PATCH /pools/{pool}/config': () => ({ slowStartMs: 1_000 }),
  'POST /pools/{pool}/config/rollback': () => ({ version: 0 }),
  'PUT /pools/{pool}/log-level': () => ({ level: 'fatal' }),
  'POST /pools/{pool}/servers': () => ({
    serverId: 's2',
    endpoint: bench.engine.url,
    dialect: 'vllm',
    maxInflight: 4,
    instanceId: 'i2',
  }),
  'PATCH /pools/{pool}/servers/{serverId}': () => ({ maxInflight: 65 }),
  'POST /pools/{pool}/servers/{serverId}/drain': () => ({ deadlineMs: 60_000 }),
  'POST /pools/{pool}/servers/{serverId}/fence': () => ({ epoch: serverEpoch }),
  'POST /pools/{pool}/workers/{workerId}/deregister': () => ({ workerEpoch }),
  'GET /pools/{pool}/requests': () => ({ job: 'job' }),
  'GET /pools/{pool}/request-totals': () => ({ job: 'job' }),
  'POST /pools/{pool}/requests/abort': () => ({ requestIds: ['job/g0/0'] }),
  'PATCH /pools/{pool}/jobs/{job}/quota': () => ({ quota: { weight: 2 } }),
  'POST /pools/{pool}/jobs/{job}/rounds/{roundId}/cancel': () => ({ mode: 'drop' }),
  'POST /pools/{pool}/jobs/{job}/longtail/requeue': () => ({
    requests: [{ requestId: 'job/g0/0', attempt: '1-a' }],
  }),
  'POST /pools/{pool}/jobs/{job}/longtail/drop': () => ({ groupIds: ['g0'], reason: 'test' }),
  'PATCH /pools/{pool}/rebalance': () => ({ mode: 'off' }),
  'POST /pools/{pool}/rebalance/plans': () => ({ planId: 'p1' }),
  'POST /pools/{pool}/weights': () => ({ syncId: 'y1', version: 2, mode: 'keep' }),
  'POST /tokens': () => ({ name: 'somebody', role: 'viewer' }),
  'DELETE /pools/{pool}': () => ({ force: true }),
  'DELETE /pools/{pool}/jobs/{job}': () => ({ force: true }),
};
/** A server that drains is removed when it has no lease; a lease ends with any other change of its server. */
const FIRST = ['lb.lease', 'server.drain', 'server.uncordon', 'lb.release'];
/** Operations that remove servers, workers, jobs or the pool are called last. */
const LAST = ['worker.deregister', 'server.remove', 'job.delete', 'pool.delete'];
/** An answer that is right although it is an error. */
const REFUSED: Record<string, string> = {
  // The commit, which comes before, has ended the sync.
  'POST /pools/{pool}/weights/{syncId}/rollback': 'WEIGHT_SYNC_ENDED',
  'GET /tokens/{tokenId}': 'TOKEN_NOT_FOUND',
};

function buildIds(route: Route): Fields {
  const ids: Fields = {
    pool: bench.pool,
    serverId: 's1',
    workerId: 'w',
    leaseId: '1.a',
    sessionId: 's',
    requestId: 'job/g0/0',
    job: 'job',
    roundId: 'r1',
    planId: 'p1',
    syncId: 'y1',
    tokenId: 'unknown',
  };
  return Object.fromEntries(Object.entries(ids).filter(([name]) => route.path.includes(`{${name}}`)));
}

function rightFields(route: Route): Fields {
  return { ...buildIds(route), ...RIGHT[formatRoute(route)]?.() };
}

describe('every route', () => {
  it.each(ROUTES.map((route) => [formatRoute(route), route] as const))(
    '%s asks for its role and its pool',
    async (_, route) => {
      const answers: Record<string, number> = {};
      const others: [string, string][] = [
        ['nobody', ''],
        ['unknown', `bw_${'a'.repeat(16)}_${'b'.repeat(43)}`],
        ['garbage', 'x'.repeat(4_000)],
        ...tokens,
      ];
      // The body is refused, so that nothing changes where the token is enough.
      const wrong = { ...buildIds(route), notAField: 1 };
      for (const [who, token] of others) answers[who] = (await api.call(route, wrong, { token })).status;
      const hasPool = route.path.includes('{pool}');
      const allowed = (role: 'viewer' | 'operator') =>
        includesRole(role, route.role) && (hasPool || route.role === 'viewer') ? 400 : 403;
      expect(answers).toEqual({
        nobody: 401,
        unknown: 401,
        garbage: 401,
        client: 403,
        trainer: 403,
        viewer: allowed('viewer'),
        operator: allowed('operator'),
        'admin of another pool': hasPool || route.role !== 'viewer' ? 403 : 400,
      });
      expect(route.method === 'GET' || answers.viewer === 403).toBe(true);
      if (!hasPool) return;
      // A refusal does not tell whether there is such a pool.
      const [, token] = tokens.at(-1)!;
      const refusal = async (pool: string) => {
        const { body } = await api.call(route, { ...wrong, pool }, { token });
        return { ...body, instance: undefined };
      };
      expect(await refusal(bench.pool)).toEqual(await refusal('nothing-there'));
    },
  );

  it('answers right input as the document says', async () => {
    const place = ({ operation }: Route) =>
      FIRST.includes(operation) ? FIRST.indexOf(operation) - 9 : LAST.indexOf(operation);
    const wrong: string[] = [];
    // Streams have tests of their own: admin-api-events.spec.ts.
    const replying = ROUTES.filter(({ isStream }) => !isStream);
    for (const route of replying.toSorted((a, b) => place(a) - place(b))) {
      const answer = await api.call(route, rightFields(route));
      const fault = route.isExport ? undefined : api.fault(route, answer);
      const code = REFUSED[formatRoute(route)];
      if (fault) wrong.push(`${formatRoute(route)}: ${fault}`);
      else if (answer.body.code !== code) wrong.push(`${formatRoute(route)}: ${JSON.stringify(answer.body)}`);
    }
    expect(wrong).toEqual([]);
    const { entries } = (await api.send('GET', `/audit-log?pool=${bench.pool}&actorId=configured`)).body;
    const shown = new Set(
      entries.filter(({ before }: Fields) => before !== undefined).map(({ operation }: Fields) => operation),
    );
    // What a route creates was not there before.
    const showing = ROUTES.filter(({ shows, creates }) => shows !== undefined && creates === undefined).map(
      ({ operation }) => operation,
    );
    expect(showing.filter((operation) => !shown.has(operation))).toEqual([]);
  });

  it('answers wrong and hostile input with a problem, and changes nothing', async () => {
    ({ workerEpoch, serverEpoch } = await fillPool(bench));
    const redis = new RedisView(testRedisUrl(), bench.prefix, bench.pool);
    // The load-balancer notes the generation whose engines it has checked, at some time after its start.
    const state = async () => {
      const dump = JSON.stringify(ofPool(await redis.dump()));
      return JSON.parse(dump.replace(/,?enginesOf=[^,"]*/, '')) as object;
    };
    const before = await state();
    const found: string[] = [];
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 });
    const hostile = fc.oneof(
      fc.constantFrom<unknown>(
        -1,
        1e300,
        '\u0000',
        '__proto__',
        '../..',
        '%00',
        "'; FLUSHALL",
        'x'.repeat(2_000),
        {},
        [],
      ),
      fc.anything({ withNullPrototype: true }),
    );
    const attack = fc.record({
      field: text,
      value: hostile,
      id: text,
      kind: fc.constantFrom('unknown', 'path', 'text', 'type', 'field'),
    });
    const send = async (
      route: Route,
      { field, value, id, kind }: { field: string; value: unknown; id: string; kind: string },
    ) => {
      const right = rightFields(route);
      const [some] = Object.keys(RIGHT[formatRoute(route)]?.() ?? {});
      const headers: Record<string, string> = kind === 'type' ? { 'Content-Type': 'text/xml' } : {};
      if (kind === 'path') return api.call(route, { ...right, ...hostileIds(route, id), unknown_: 1 }, {});
      if (kind === 'field' && some) {
        const fields = { ...right, [some]: value };
        // A value that happens to be right is sent with a field that is not.
        return api.call(route, api.accepts(route, fields) ? { ...fields, unknown_: 1 } : fields, {});
      }
      if (kind === 'text' && !['GET', 'DELETE'].includes(route.method))
        return api.send(route.method, buildPath(route), `{${id}`);
      return api.call(route, { ...right, [`_${field}`]: value ?? 1 }, { headers });
    };
    const attackRoute = async (route: Route): Promise<void> => {
      await fc.assert(
        fc.asyncProperty(attack, async (one) => {
          const answer = await send(route, one);
          const fault = api.fault(route, answer);
          if (fault || answer.status >= 500 || answer.status < 300)
            found.push(`${formatRoute(route)} ${JSON.stringify(one)}: ${fault ?? JSON.stringify(answer.body)}`);
        }),
        { numRuns: 15 },
      );
    };
    await Promise.all(ROUTES.map(attackRoute));
    expect(found).toEqual([]);
    expect(await state()).toEqual(before);
  });
});

function buildPath(route: Route): string {
  const ids = buildIds(route);
  return route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(ids[name])));
}

function hostileIds(route: Route, id: string): Fields {
  const { pool, ...ids } = buildIds(route);
  return { pool, ...Object.fromEntries(Object.keys(ids).map((name) => [name, id])) };
}

function ofPool(dump: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(dump).filter(([key]) => key.includes(`{${bench.pool}}`)));
}

it('shows sessions, rounds, groups and requests, exports the long-tail queue, and proves the counts', async () => {
  ({ workerEpoch, serverEpoch } = await fillPool(bench));
  const get = async (path: string) => (await api.send('GET', `/pools/${bench.pool}${path}`)).body;
  const post = async (path: string, body?: object) =>
    (await api.send('POST', `/pools/${bench.pool}${path}`, body && JSON.stringify(body))).body;
  expect(await get('/sessions?serverId=s1')).toEqual({
    sessions: [{ sessionId: 's', serverId: 's1', serverEpoch, leases: 1 }],
  });
  expect(await get('/sessions?serverId=s2')).toEqual({ sessions: [] });
  expect((await get('/jobs/job/rounds')).rounds).toMatchObject([{ roundId: 'r1', step: 1, state: 'open' }]);
  const { groups } = await get('/jobs/job/rounds/r1/groups');
  expect(groups).toMatchObject([{ groupId: 'g0', samples: 2, liveSamples: 2, cuts: 0 }, { groupId: 'g1' }]);
  expect((await get('/jobs/job/rounds/r1/groups?set=accepted')).groups).toEqual([]);
  expect((await get('/requests?job=job&state=pending')).requests).toHaveLength(4);
  expect((await get('/requests?job=job&state=running')).requests).toEqual([]);
  expect(await get('/requests/job%2Fg1%2F0')).toMatchObject({
    requestId: 'job/g1/0',
    state: 'pending',
    job: 'job',
    groupId: 'g1',
    roundId: 'r1',
    segments: [],
  });
  expect(await get('/audit')).toMatchObject({ balanced: true, findings: [], counts: { leases: 1, requests: 4 } });
  await post('/jobs/job/rounds/r1/cancel', { mode: 'requeue' });
  const lines = async () => (await get('/jobs/job/longtail/export')).split('\n').filter((line: string) => line !== '');
  await expect.poll(lines).toHaveLength(2);
  expect(JSON.parse((await lines())[0])).toMatchObject({ groupId: 'g0', samples: 2 });
  expect(await post('/servers/s1/quarantine', { reason: 'to be examined' })).toMatchObject({ state: 'failed' });
  // The engine of the quarantined server has restarted. The server is cordoned, and gets no leases.
  const { endpoint } = await get('/servers/s1');
  await post('/servers', {
    serverId: 's1',
    endpoint,
    dialect: 'vllm',
    maxInflight: 64,
    probe: false,
    instanceId: 'i2',
  });
  expect(await get('/servers/s1')).toMatchObject({ state: 'cordoned', inflight: 0 });
  expect(await post('/servers/s1/uncordon')).toMatchObject({ state: 'ready' });
  expect((await get('/servers/s9')).code).toBe('SERVER_NOT_FOUND');
  expect((await get('/leases/9.a')).code).toBe('LEASE_NOT_FOUND');
});

describe('the server', () => {
  it('answers an unknown path, another method, another type and a body that is too large', async () => {
    const path = `/pools/${bench.pool}/pause`;
    const answers = [
      await api.send('GET', '/nothing'),
      await api.send('GET', path),
      await api.send('POST', path, '{}', { headers: { 'Content-Type': 'text/plain' } }),
      await api.send('POST', path, JSON.stringify({ a: 'x'.repeat(1_000_001) })),
      await api.send('POST', path, '[1]'),
      await api.send('POST', '/pools/%E0%A4%A/pause'),
      await api.send('POST', '/pools/a%2Eb/pause'),
      await api.send('POST', '/pools/mistyped/pause'),
    ];
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [404, 'ROUTE_NOT_FOUND'],
      [405, 'METHOD_NOT_ALLOWED'],
      [415, 'UNSUPPORTED_MEDIA_TYPE'],
      [413, 'PAYLOAD_TOO_LARGE'],
      [400, 'MALFORMED_JSON'],
      [400, 'VALIDATION_FAILED'],
      [400, 'VALIDATION_FAILED'],
      [404, 'POOL_NOT_FOUND'],
    ]);
    expect(answers[1]!.headers.get('Allow')).toBe('POST');
    for (const { headers } of answers) {
      expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
      expect(headers.get('Access-Control-Allow-Origin')).toBeNull();
      expect(headers.get('X-Request-Id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it('shows its health and its document without a token, and nothing else', async () => {
    for (const path of ['health', 'livez', 'readyz', 'metrics', 'version', 'openapi.json']) {
      expect((await fetch(`${api.url}/${path}`)).status, path).toBe(200);
    }
    const { paths } = (await (await fetch(`${api.url}/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(paths)).toHaveLength(new Set(ROUTES.map(({ path }) => path)).size);
  });

  it('measures requests by route, method and class of the status, and never by id', async () => {
    const server = `/pools/${bench.pool}/servers/s1`;
    await api.send('GET', server);
    await api.send('GET', server, undefined, { token: 'wrong' });
    await api.send('GET', '/nothing');
    const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
    const route = '/api/v1/pools/{pool}/servers/{serverId}';
    for (const [name, status] of [
      [route, '2xx'],
      [route, '4xx'],
      ['other', '4xx'],
    ]) {
      const labels = `app="admin-api",method="GET",route="${name}",status="${status}"`;
      await expect.poll(metrics).toContain(`broomwagon_http_request_seconds_count{${labels}}`);
      expect(await metrics()).toContain(`{le="0.0001",${labels}}`);
    }
    expect(await metrics()).not.toMatch(new RegExp(`http_request.*${bench.pool}`));
    // The one request in flight is the request for the metrics.
    await expect.poll(metrics).toContain('broomwagon_http_requests_in_flight{app="admin-api"} 1\n');
  });

  it('answers 429 with Retry-After above the limit of a token', async () => {
    const limited = await AdminApi.start(bench.prefix, { rateLimitPerToken: 3 });
    let refused: Answer | undefined;
    // On a busy machine the requests may fall into several seconds.
    await expect
      .poll(async () => {
        const answers = await Promise.all(Array.from({ length: 12 }, () => limited.send('GET', '/pools')));
        return (refused = answers.find(({ status }) => status === 429));
      })
      .toBeDefined();
    await limited.close();
    expect(refused!.body).toMatchObject({ code: 'RATE_LIMITED', retryable: true });
    expect(refused!.headers.get('Retry-After')).toBe('1');
  });

  it('answers 429 above the limit of an address, also without a token, and serves other addresses', async () => {
    const limited = await AdminApi.start(bench.prefix, { rateLimitPerAddress: 1, trustedProxies: 1 });
    const statusFor = async (address: string) => {
      const headers = { 'X-Forwarded-For': address };
      return (await limited.send('GET', '/pools', undefined, { token: 'wrong', headers })).status;
    };
    const statuses = () => Promise.all(Array.from({ length: 10 }, () => statusFor('192.0.2.1')));
    await expect.poll(statuses).toContain(429);
    expect(await statusFor('192.0.2.2')).toBe(401);
    await limited.close();
  });
});

describe('tokens', () => {
  it('are stored as hashes, live side by side during a rotation, and are refused when revoked or expired', async () => {
    const make = async (more: object = {}) =>
      (await api.send('POST', '/tokens', JSON.stringify({ name: 'ci', role: 'viewer', ...more }))).body;
    const [first, second] = [await make(), await make()];
    const fetchStatus = async (token: string) => (await api.send('GET', '/pools', undefined, { token })).status;
    expect([await fetchStatus(first.token), await fetchStatus(second.token)]).toEqual([200, 200]);
    const redis = connectRedis({ url: testRedisUrl() });
    const stored = await redis.hget(`${bench.prefix}:credentials`, first.tokenId);
    redis.disconnect();
    expect(stored).toContain(hashOfToken(first.token));
    const [, secret] = /^bw_[^_]+_(.+)$/.exec(first.token)!;
    expect(stored).not.toContain(secret);
    const { body } = await api.send('GET', '/tokens');
    expect(body.tokens).toContainEqual(expect.objectContaining({ tokenId: first.tokenId, name: 'ci' }));
    expect(JSON.stringify(body)).not.toContain(hashOfToken(first.token));
    expect((await api.send('DELETE', `/tokens/${first.tokenId}`)).body).toEqual({ revoked: true });
    await expect.poll(() => fetchStatus(first.token)).toBe(401);
    expect(await fetchStatus(second.token)).toBe(200);
    const short = await make({ expiresInMs: 1_000 });
    await expect.poll(() => fetchStatus(short.token)).toBe(401);
  });

  it('are made once at the first start, by one of several replicas', async () => {
    const { pool: prefix } = testPool();
    const redis = connectRedis({ url: testRedisUrl() });
    const made = await Promise.all(Array.from({ length: 8 }, () => new CredentialStore(redis, prefix).createFirst()));
    const [first, ...others] = made.filter((one) => one !== undefined);
    expect(others).toEqual([]);
    expect(await new CredentialStore(redis, prefix).find(first!.token)).toMatchObject({ role: 'admin' });
    expect(await new CredentialStore(redis, prefix).createFirst()).toBeUndefined();
    expect(first!.expiresAtMs).toBe(first!.createdAtMs + 86_400_000);

    const key = `${prefix}:credentials`;
    const stored = JSON.parse((await redis.hget(key, first!.tokenId))!) as object;
    await redis.hset(key, first!.tokenId, JSON.stringify({ ...stored, expiresAtMs: 1 }));
    const next = await Promise.all(Array.from({ length: 8 }, () => new CredentialStore(redis, prefix).createFirst()));
    expect(next.filter((one) => one !== undefined)).toHaveLength(1);
    redis.disconnect();
    await flushPrefix(testRedisUrl(), `${prefix}:`);
  });
});

it('has no state of its own: another replica knows its tokens, and the replies to its changes', async () => {
  const other = await AdminApi.start(bench.prefix);
  const token = await api.createToken('admin', [bench.pool]);
  const headers = { 'Idempotency-Key': 'replicas' };
  const pause = (of: AdminApi) => of.send('POST', `/pools/${bench.pool}/pause`, undefined, { token, headers });
  expect((await pause(api)).body).toEqual({ paused: true, changed: true });
  const again = await pause(other);
  expect([again.body.changed, again.headers.get('Idempotency-Replayed')]).toEqual([true, 'true']);
  await other.close();
  expect((await api.send('POST', `/pools/${bench.pool}/resume`, undefined, { token })).status).toBe(200);
});

describe('changes', () => {
  const pathOfPool = () => `/pools/${bench.pool}`;
  const patch = (body: object, headers: Record<string, string> = {}) =>
    api.send('PATCH', `${pathOfPool()}/config`, JSON.stringify(body), { headers });

  it('of the configuration are refused for another ETag, have a history, and are rolled back', async () => {
    const read = () => api.send('GET', `${pathOfPool()}/config`);
    const before = await read();
    const etag = before.headers.get('ETag')!;
    expect(etag).toBe(`"${before.body.version}"`);
    expect(await patch({ maxSessions: 7 }, { 'If-Match': etag })).toMatchObject({ status: 200 });
    const after = await read();
    const refused = await patch({ maxSessions: 8 }, { 'If-Match': etag });
    expect([refused.status, refused.body.code]).toEqual([412, 'VERSION_MISMATCH']);
    expect((await patch({ maxSessions: 8 }, { 'If-Match': 'W/"x"' })).status).toBe(400);
    expect((await read()).body).toEqual(after.body);
    const { versions } = (await api.send('GET', `${pathOfPool()}/config/history`)).body;
    expect(versions.slice(0, 2)).toMatchObject([
      { version: after.body.version, settings: { maxSessions: 7 } },
      { version: before.body.version, settings: before.body.settings },
    ]);
    const rollBack = (version: number) =>
      api.send('POST', `${pathOfPool()}/config/rollback`, JSON.stringify({ version }));
    expect((await rollBack(before.body.version)).body).toMatchObject({
      version: after.body.version + 1,
      settings: before.body.settings,
    });
    expect((await rollBack(999)).body.code).toBe('VERSION_NOT_FOUND');
  });

  it('of weights leave the version that an operator names, and are in the settings in force', async () => {
    const read = () => api.send('GET', `${pathOfPool()}/config`);
    await patch({ maxSessions: 31 });
    const { headers, body: before } = await read();
    const post = (path: string, body: object) => api.send('POST', `${pathOfPool()}${path}`, JSON.stringify(body));
    expect((await post('/weights', { syncId: 'step', version: 60, mode: 'keep' })).status).toBe(200);
    expect((await post('/weights/step/commit', {})).status).toBe(200);
    const after = await read();
    expect(after.body.settings).toEqual({ ...before.settings, requiredWeightVersion: 60 });
    expect(after.headers.get('ETag')).toBe(headers.get('ETag'));
    const { versions } = (await api.send('GET', `${pathOfPool()}/config/history`)).body;
    expect(versions[0]).toMatchObject({ version: before.version, settings: after.body.settings });
    const changed = await patch({ maxSessions: 32 }, { 'If-Match': headers.get('ETag')! });
    expect([changed.status, changed.body.settings.maxSessions]).toEqual([200, 32]);
    expect(changed.body.version).toBeGreaterThan(before.version);
    expect((await patch({ maxSessions: 33 }, { 'If-Match': headers.get('ETag')! })).status).toBe(412);
    await patch({ reset: ['requiredWeightVersion'] });
  });

  it('that create an object answer 201 with its address, and 200 when it existed', async () => {
    const { endpoint } = (await api.send('GET', `${pathOfPool()}/servers/s1`)).body;
    const server = { serverId: 'a/new', endpoint: `${endpoint}/new`, dialect: 'vllm', maxInflight: 1, probe: false };
    const register = () => api.send('POST', `${pathOfPool()}/servers`, JSON.stringify(server));
    const plan = () => api.send('POST', `${pathOfPool()}/rebalance/plans`, '{"planId":"new"}');
    const follow = async ({ headers }: Answer) =>
      (await api.send('GET', headers.get('Location')!.slice('/api/v1'.length))).body;
    const first = await register();
    expect(first.status).toBe(201);
    expect(await follow(first)).toMatchObject({ serverId: 'a/new' });
    const again = await register();
    expect([again.status, again.headers.get('Location')]).toEqual([200, null]);
    const planned = await plan();
    expect(planned.status).toBe(201);
    expect(await follow(planned)).toMatchObject({ planId: 'new' });
    expect((await plan()).status).toBe(200);
    await api.send('DELETE', `${pathOfPool()}/servers/a%2Fnew`);
    const token = await api.send('POST', '/tokens', '{"name":"created","role":"viewer"}');
    expect(token.status).toBe(201);
    expect(await follow(token)).toEqual({ ...token.body, token: undefined });
  });

  it.each([
    ['rebalance', (value: number) => ({ maxMovesPerRequest: value })],
    ['jobs/job/quota', (value: number) => ({ quota: { weight: value } })],
  ])('of %s are refused for another ETag; a change that is in force is not', async (path, body) => {
    const read = () => api.send('GET', `${pathOfPool()}/${path}`);
    const change = (value: number, etag?: string) =>
      api.send('PATCH', `${pathOfPool()}/${path}`, JSON.stringify(body(value)), {
        headers: etag === undefined ? {} : { 'If-Match': etag },
      });
    const before = await read();
    const etag = before.headers.get('ETag')!;
    expect(etag).toBe(`"${before.body.version}"`);
    const changed = await change(41, etag);
    expect([changed.status, changed.headers.get('ETag')]).toEqual([200, `"${before.body.version + 1}"`]);
    const refused = await change(42, etag);
    expect([refused.status, refused.body.code, refused.body.field]).toEqual([412, 'VERSION_MISMATCH', 'ifVersion']);
    expect((await read()).body).toEqual(changed.body);
    // A repeat of a change whose reply was lost has the same reply.
    expect((await change(41, etag)).body).toEqual(changed.body);
    expect((await change(43)).body.version).toBe(before.body.version + 2);
    const query = `pool=${bench.pool}&operation=${changed.body.job ? 'job.configure' : 'rebalance.configure'}`;
    const { entries } = (await api.send('GET', `/audit-log?${query}`)).body;
    expect(entries.at(-1)).toMatchObject({
      before: { version: before.body.version + 1 },
      after: { version: before.body.version + 2 },
    });
  });

  it('of the settings of the rebalancer by many callers at once are all made', async () => {
    const fields = ['pauseSeconds', 'maxMovesPerRequest', 'minMoveIntervalMs', 'minRemainingTokens', 'planIntervalMs'];
    const path = `${pathOfPool()}/rebalance`;
    await Promise.all(fields.map((field) => api.send('PATCH', path, JSON.stringify({ [field]: 777 }))));
    const { body } = await api.send('GET', path);
    expect(fields.map((field) => body[field])).toEqual(fields.map(() => 777));
  });

  it('of a pool that does not exist are refused, and do not make it', async () => {
    const send = (method: string, path: string, body?: object) =>
      api.send(method, `/pools/typo/${path}`, body && JSON.stringify(body));
    const refused = { status: 404, body: { code: 'POOL_NOT_FOUND', field: 'pool' } };
    expect(await send('POST', 'pause')).toMatchObject(refused);
    expect(await send('PATCH', 'config', { maxSessions: 9 })).toMatchObject(refused);
    expect(await send('PATCH', 'jobs/job/quota', { quota: { weight: 2 } })).toMatchObject(refused);
    expect((await api.send('GET', '/pools')).body.pools).not.toContain('typo');
  });

  it('with two versions, or with a body where fields are in the query, are refused', async () => {
    const etag = (await api.send('GET', `${pathOfPool()}/config`)).headers.get('ETag')!;
    const twice = await patch({ maxSessions: 9, ifVersion: 9_999 }, { 'If-Match': etag });
    expect(twice.body).toMatchObject({ code: 'VALIDATION_FAILED', field: 'If-Match' });
    const hidden = await api.send('DELETE', `${pathOfPool()}/jobs/other`, '{"force":true}');
    expect(hidden.body).toMatchObject({ code: 'VALIDATION_FAILED', field: 'body' });
  });

  it('are made once for an Idempotency-Key, and by each caller with keys of its own', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const send = (body: object, token?: string) =>
      api.send('PATCH', `${pathOfPool()}/config`, JSON.stringify(body), { headers, token });
    const first = await send({ maxSessions: 11 });
    await patch({ maxSessions: 12 });
    const again = await send({ maxSessions: 11 });
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('Idempotency-Replayed')).toBe('true');
    expect((await api.send('GET', `${pathOfPool()}/config`)).body.settings.maxSessions).toBe(12);
    const other = await send({ maxSessions: 13 });
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const admin = await api.createToken('admin', [bench.pool]);
    expect((await send({ maxSessions: 14 }, admin)).body.settings.maxSessions).toBe(14);
    // An error leaves the key free.
    const wrong = { headers: { 'Idempotency-Key': 'wrong' } };
    const path = `${pathOfPool()}/config`;
    expect((await api.send('PATCH', path, '{"maxSessions":0}', wrong)).status).toBe(400);
    expect((await api.send('PATCH', path, '{"maxSessions":15}', wrong)).status).toBe(200);
    const secret = await api.send('POST', '/tokens', '{"name":"n","role":"viewer"}', { headers });
    expect(secret.body).toMatchObject({ code: 'VALIDATION_FAILED', field: 'Idempotency-Key' });
  });

  describe('whose replica died between the change and its reply', () => {
    /** Sends a change, then removes its reply from Redis, as if the replica had died before it stored the reply. */
    async function loseReply(send: () => Promise<Answer>): Promise<Answer> {
      const redis = connectRedis({ url: testRedisUrl() });
      const stored = async () =>
        (await redis.keys(`${bench.prefix}:replies:*`)).filter((key) => !key.includes(':running'));
      const before = new Set(await stored());
      const first = await send();
      const key = (await stored()).find((one) => !before.has(one));
      const { fingerprint } = JSON.parse((await redis.get(key!))!);
      await redis.set(key!, JSON.stringify({ fingerprint }), 'KEEPTTL');
      redis.disconnect();
      return first;
    }
    const version = async () => (await api.send('GET', `${pathOfPool()}/config`)).body.version;

    it('are made again with a version, and get their outcome without a second effect', async () => {
      const headers = { 'Idempotency-Key': 'crash-1', 'If-Match': `"${await version()}"` };
      const first = await loseReply(() => patch({ maxSessions: 21 }, headers));
      const again = await patch({ maxSessions: 21 }, headers);
      expect([again.status, again.body]).toEqual([200, first.body]);
      expect((await patch({ maxSessions: 21 }, headers)).headers.get('Idempotency-Replayed')).toBe('true');
      // After a change of another caller the repeat must not undo that.
      const next = { 'Idempotency-Key': 'crash-2', 'If-Match': `"${await version()}"` };
      await loseReply(() => patch({ maxSessions: 22 }, next));
      await patch({ maxSessions: 23 });
      expect((await patch({ maxSessions: 22 }, next)).body.code).toBe('VERSION_MISMATCH');
      expect((await api.send('GET', `${pathOfPool()}/config`)).body.settings.maxSessions).toBe(23);
    });

    it('are made again with a fence: a lease is released once', async () => {
      const acquire = { acquireId: 'crash', requestId: 'r', workerId: 'w', workerEpoch, waitMs: 10_000 };
      const { leaseId } = await bench.client.call(bench.pool, 'lb.acquire', acquire);
      const send = () =>
        api.send('DELETE', `${pathOfPool()}/leases/${leaseId}`, undefined, {
          headers: { 'Idempotency-Key': 'crash-3' },
        });
      expect((await loseReply(send)).body).toEqual({ released: true, reason: 'released' });
      expect((await send()).body).toEqual({ released: false, reason: 'already-released' });
    });

    it('are refused without a fence, again and again, and each is in the audit log', async () => {
      const headers = { 'Idempotency-Key': 'crash-4' };
      const pause = () => api.send('POST', `${pathOfPool()}/pause`, undefined, { headers });
      await loseReply(pause);
      expect((await api.send('POST', `${pathOfPool()}/resume`)).body).toMatchObject({ changed: true });
      for (let repeat = 0; repeat < 2; repeat++) {
        expect((await pause()).body).toMatchObject({ status: 409, code: 'OUTCOME_UNKNOWN', retryable: false });
      }
      expect((await api.send('POST', `${pathOfPool()}/resume`)).body).toMatchObject({ changed: false });
      const { entries } = (await api.send('GET', `/audit-log?pool=${bench.pool}&operation=pool.pause`)).body;
      expect(entries.map(({ result }: { result: string }) => result).slice(-3)).toEqual([
        'done',
        'OUTCOME_UNKNOWN',
        'OUTCOME_UNKNOWN',
      ]);
    });
  });

  it('are in the audit log with caller, operation, old and new values, and without a token', async () => {
    const token = await api.createToken('admin', [bench.pool]);
    const path = `${pathOfPool()}/config`;
    const headers = { 'X-Request-Id': 'request-1' };
    await patch({ slowStartMs: 1 });
    await api.send('PATCH', path, '{"slowStartMs":2}', { token, headers });
    // An entry that is none is left out.
    const jetstream = bench.client.messaging.connection.nats.jetstream();
    await jetstream.publish(auditSubject(bench.pool, 'pool.configure'), 'not json');
    await api.send('PATCH', path, '{"slowStartMs":-2}', { token, headers });
    const log = async (query: string) => (await api.send('GET', `/audit-log?${query}`)).body;
    const actorId = token.split('_')[1];
    const { entries } = await log(`pool=${bench.pool}&operation=pool.configure&actorId=${actorId}`);
    expect(entries).toMatchObject([
      {
        requestId: 'request-1',
        actor: 'admin',
        role: 'admin',
        result: 'done',
        request: { slowStartMs: 2 },
        before: { settings: { slowStartMs: 1 } },
        after: { settings: { slowStartMs: 2 } },
      },
      {
        result: 'VALIDATION_FAILED',
        before: { settings: { slowStartMs: 2 } },
        after: { settings: { slowStartMs: 2 } },
      },
    ]);
    const created = await log('operation=token.create');
    expect(created.entries.length).toBeGreaterThan(1);
    expect(JSON.stringify(created)).not.toMatch(/bw_/);
    expect(created.entries.at(-1)).toMatchObject({ after: { tokenId: expect.any(String), role: expect.any(String) } });
    const endpoint = 'http://us/er:sec@secret@host:1/v1?key=secret';
    const server = { serverId: 's1', endpoint, dialect: 'vllm', maxInflight: 1 };
    expect((await api.send('POST', `${pathOfPool()}/servers`, JSON.stringify(server))).status).toBe(400);
    const registered = await log(`pool=${bench.pool}&operation=server.register`);
    expect(registered.entries.at(-1)).toMatchObject({
      request: { endpoint: '***@host:1/v1?***' },
      before: { serverId: 's1' },
    });
    const one = await log('limit=1');
    const next = await log(`limit=1&cursor=${one.cursor}`);
    expect(next.entries).toHaveLength(1);
    expect(next.entries[0]).not.toEqual(one.entries[0]);
    const fetchStatus = async (query: string) =>
      (await api.send('GET', `/audit-log${query}`, undefined, { token })).status;
    expect([await fetchStatus(''), await fetchStatus('?pool=other'), await fetchStatus(`?pool=${bench.pool}`)]).toEqual(
      [403, 403, 200],
    );
    expect(await fetchStatus(`?pool=${bench.pool}&pool=other`)).toBe(403);
  });
});

it('has a document that a public linter accepts', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lint({ ref: 'docs/protocol/openapi.json', config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
});

it('knows a role for each number of rights', () => {
  for (const role of ROLES)
    for (const other of ROLES) expect(includesRole(role, other)).toBe(ROLES.indexOf(role) >= ROLES.indexOf(other));
});
