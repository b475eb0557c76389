import { decodePathId, encodePathId, fieldsOfPath, type Route, ROUTES } from '@broomwagon/contracts';
import { createAdminClient, readData } from '@broomwagon/admin-client';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AdminApi } from './system/admin-api';
import { fillPool } from './system/filled-pool';
import { RedisView } from './system/redis-view';
import { ServiceBench } from './system/service-bench';

let bench: ServiceBench;
let api: AdminApi;
let redis: RedisView;

beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent', eventsRelay: false }, 1);
  api = await AdminApi.start(bench.prefix);
  await fillPool(bench);
  redis = new RedisView(testRedisUrl(), bench.prefix, bench.pool);
});
afterAll(async () => {
  redis?.close();
  await api?.close();
  await bench?.close();
});

/** The path of a route with the pool of the test, and the same id for each other field. */
function fillPath({ path }: Route, id: string): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'pool' ? bench.pool : id));
}

/** Paths that are one empty segment, one trailing slash, or one letter in the wrong case away from a route. */
function wrongPaths(route: Route): string[] {
  const right = fillPath(route, 's1');
  const emptied = fieldsOfPath(route.path).map((field) =>
    fillPath({ ...route, path: route.path.replace(`{${field}}`, '') }, 's1'),
  );
  const fixed = route.path.split('/').filter((part) => part !== '' && !part.startsWith('{'));
  const shouted = fixed.map((part) =>
    fillPath({ ...route, path: route.path.replace(`/${part}`, `/${part.toUpperCase()}`) }, 's1'),
  );
  return [`${right}/`, `/${right}`, ...emptied, ...shouted];
}

it('answers no path with an empty segment, a trailing slash or a wrong case, and changes nothing', async () => {
  const ofPool = async () =>
    Object.fromEntries(Object.entries(await redis.dump()).filter(([key]) => key.includes(`{${bench.pool}}:session`)));
  const before = await ofPool();
  expect(Object.keys(before)).not.toEqual([]);
  const answered: string[] = [];
  const tryRoute = async (route: Route): Promise<void> => {
    for (const path of wrongPaths(route)) {
      const body = ['GET', 'DELETE'].includes(route.method) ? undefined : '{}';
      const { status, body: answer } = await api.send(route.method, path, body);
      // A word in upper case may stand where another route has an id, as in /sessions/CLEAR.
      const isRefused = ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED'].includes(answer.code);
      if (status < 400 || !isRefused) answered.push(`${route.method} ${path}: ${status}`);
    }
  };
  await Promise.all(ROUTES.map(tryRoute));
  expect(answered).toEqual([]);
  expect(await ofPool()).toEqual(before);
});

it('says what is wrong with a path', async () => {
  const explain = async (method: string, path: string) => (await api.send(method, path)).body.detail;
  expect(await explain('DELETE', `/pools/${bench.pool}/sessions/`)).toMatch(/a segment is empty/);
  expect(await explain('GET', `/Pools/${bench.pool}/servers`)).toMatch(/case .* \/api\/v1\/pools\/\{pool\}\/servers$/);
});

it('clears all sessions by an action of its own, and names the action to callers of the earlier route', async () => {
  const earlier = await api.send('DELETE', `/pools/${bench.pool}/sessions`);
  expect(earlier).toMatchObject({ status: 405, body: { code: 'METHOD_NOT_ALLOWED' } });
  expect(earlier.body.detail).toMatch(/POST \/pools\/\{pool\}\/sessions\/clear$/);
  const list = async () => (await api.send('GET', `/pools/${bench.pool}/sessions`)).body.sessions;
  expect(await list()).toMatchObject([{ sessionId: 's', serverId: 's1' }]);
  expect((await api.send('POST', `/pools/${bench.pool}/sessions/clear`)).body).toEqual({ cleared: 1 });
  // The session has a lease: it stays without a server.
  expect(await list()).toMatchObject([{ sessionId: 's', leases: 1 }]);
  expect((await list())[0]).not.toHaveProperty('serverId');
});

it('reads ids of a path in base64url, which no proxy changes, and finds the same objects', async () => {
  const ids = ['a/b', '..', '.', 'a\\b', 'a%2Fb', 'a;b?c#d', 'base64url:x', 'ü/é', ' ', 'plain.id'];
  const client = createAdminClient({ url: api.url, token: api.rootToken });
  for (const serverId of ids) {
    const params = { path: { pool: bench.pool } };
    const endpoint = `${bench.engine.url}/${ids.indexOf(serverId)}`;
    const body = { serverId, endpoint, dialect: 'vllm' as const, maxInflight: 1, probe: false };
    await readData(client.POST('/api/v1/pools/{pool}/servers', { params, body }));
    const named = { params: { path: { pool: bench.pool, serverId } } };
    const found = await readData(client.GET('/api/v1/pools/{pool}/servers/{serverId}', named));
    expect(found.serverId).toBe(serverId);
    expect(decodePathId('serverId', decodeURIComponent(encodePathId(serverId)))).toBe(serverId);
    expect((await api.send('GET', `/pools/${bench.pool}/servers/${encodePathId(serverId)}`)).body.serverId).toBe(
      serverId,
    );
  }
  expect(encodePathId('a/b')).toBe('base64url:YS9i');
  for (const broken of ['base64url:', 'base64url:YS9i=', 'base64url:a', 'base64url:_w', 'base64url:YS9j*']) {
    const { status, body } = await api.send('GET', `/pools/${bench.pool}/servers/${broken}`);
    expect([broken, status, body.field]).toEqual([broken, 400, 'serverId']);
  }
});

it('is asked by its client for no empty id', async () => {
  const client = createAdminClient({ url: api.url, token: api.rootToken });
  const params = { path: { pool: bench.pool, sessionId: '' } };
  const call = client.DELETE('/api/v1/pools/{pool}/sessions/{sessionId}', { params });
  await expect(readData(call)).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'sessionId' });
});
