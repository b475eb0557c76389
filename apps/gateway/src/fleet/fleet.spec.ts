import { loadConfig } from '@broomwagon/platform';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { beforeEach, expect, it } from 'vitest';
import { toServerId } from '@broomwagon/engines';
import { GatewayConfig } from '../gateway.config';
import { inEngine, inject } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(11, { speed: 20, registered: 'none', gateway: { listedWorkers: 'engines' } });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

const servers = async () => (await bench.client.call(bench.pool, 'server.list', {})).servers;
const send = async (method: string, path: string, headers: Record<string, string> = {}, on = gateway) => {
  const response = await fetch(`${on.url}${path}`, { method, headers });
  // oxlint-disable-next-line typescript/no-explicit-any
  return { status: response.status, body: (await response.json()) as any };
};

it('adds, lists and removes an engine as the router of SGLang', async () => {
  const { url } = bench.engine;
  const created = await gateway.post('/workers', { url, worker_type: 'regular' });
  expect([created.status, created.body]).toMatchObject([202, { status: 'accepted', worker_id: toServerId(url), url }]);
  const [first] = await servers();
  expect(first).toMatchObject({ endpoint: url, dialect: 'sglang', maxInflight: 256 });
  expect((await gateway.post('/workers', { url: `${url}/` })).status).toBe(202);
  expect((await servers()).map(({ epoch }) => epoch)).toEqual([first!.epoch]);
  await expect.poll(async () => (await gateway.get('/workers')).body.stats.healthy_workers).toBe(1);
  const { body } = await gateway.get('/workers');
  expect(body).toMatchObject({
    total: 1,
    workers: [{ id: toServerId(url), url, worker_type: 'regular', status: 'ready', runtime_type: 'sglang', load: 0 }],
    stats: { total_workers: 1, by_type: { regular: 1 } },
  });
  const answer = await gateway.post('/generate', { input_ids: [1], sampling_params: { max_new_tokens: 3 } });
  expect(answer.body.output_ids).toHaveLength(3);
  expect((await send('DELETE', `/workers/${body.workers[0].id}`)).status).toBe(202);
  await expect.poll(servers).toEqual([]);
  const again = await send('DELETE', `/workers/${encodeURIComponent(url)}`);
  expect([again.status, again.body.error.type]).toEqual([404, 'SERVER_NOT_FOUND']);
});

it('knows one engine by every spelling of its address', async () => {
  const { url } = bench.engine;
  const { port } = new URL(url);
  const spellings = [
    `${url}/v1/`,
    `http://localhost:${port}`,
    `HTTP://127.0.0.1:0${port}`,
    `http://[::ffff:7f00:1]:${port}`,
  ];
  for (const spelling of spellings) {
    const created = await gateway.post('/workers', { url: spelling });
    expect([created.status, created.body.worker_id, created.body.url]).toEqual([202, toServerId(url), url]);
  }
  expect(await servers()).toMatchObject([{ serverId: toServerId(url), endpoint: url }]);
  expect((await gateway.post('/workers', { url: `${url}?x=1` })).body.error.type).toBe('VALIDATION_FAILED');
  expect((await send('DELETE', `/workers/${encodeURIComponent(spellings[1]!)}`)).status).toBe(202);
  expect(await servers()).toEqual([]);
});

it('adds, lists and removes an engine by the older routes, and removes it by its URL', async () => {
  const { url } = bench.engine;
  const added = await send('POST', `/add_worker?url=${encodeURIComponent(url)}`);
  expect(added).toEqual({ status: 200, body: { status: 'success', worker_urls: { [url]: 0 } } });
  expect((await gateway.get('/list_workers')).body).toEqual({ urls: [url] });
  expect((await send('POST', `/remove_worker?url=${encodeURIComponent(url)}`)).body).toEqual({ status: 'success' });
  expect(await servers()).toEqual([]);
  expect((await gateway.post('/add_worker', { url })).status).toBe(200);
  expect((await send('DELETE', `/workers/${encodeURIComponent(url)}`)).status).toBe(202);
  expect(await servers()).toEqual([]);
});

it('lists itself by default, so that aborts reach it', async () => {
  const other = await Gateway.start(bench.prefix, bench.pool);
  expect((await other.get('/list_workers')).body).toEqual({ urls: [other.url] });
  expect((await other.get('/workers')).body.workers).toMatchObject([{ url: other.url, is_healthy: false }]);
  await bench.register({ dialect: 'sglang' });
  await expect.poll(async () => (await other.get('/workers')).body.workers[0].status).toBe('ready');
  await other.close();
});

it('lists itself by its public address', async () => {
  const other = await Gateway.start(bench.prefix, bench.pool, { publicUrl: 'https://gateway.example' });
  expect((await other.get('/list_workers')).body).toEqual({ urls: ['https://gateway.example'] });
  await other.close();
  expect(() => loadConfig(GatewayConfig, { env: { PUBLIC_URL: 'gateway' } })).toThrow(/PUBLIC_URL/);
});

it('has a load of 0 for slime once abort_all has ended running and waiting requests', async () => {
  await bench.register({ dialect: 'sglang', maxInflight: 1 });
  const body = { input_ids: [1], sampling_params: { max_new_tokens: 8_000 } };
  const replies = [gateway.post('/generate', body), gateway.post('/generate', body)];
  const load = async () => (await gateway.get('/v1/loads?include=core')).body.loads[0];
  const expected = { num_running_reqs: 1, num_waiting_reqs: 1, num_total_reqs: 2 };
  await expect.poll(load).toMatchObject(expected);
  await gateway.post('/abort_request', { abort_all: true });
  for (const { body: reply } of await Promise.all(replies)) expect(reply.meta_info.finish_reason.type).toBe('abort');
  await expect.poll(async () => (await load()).num_total_reqs).toBe(0);
});

it('holds the lease of an aborted response until the engine has answered the abort', async () => {
  await bench.register({ dialect: 'sglang' });
  // The engine does not notice that the connection was closed, and refuses two aborts.
  await inject(bench.engine.url, { kind: 'stall-unnoticed', afterTokens: 3 });
  await inject(bench.engine.url, { kind: 'abort-500', count: 2 });
  const body = { input_ids: [1], rid: 'r', sampling_params: { max_new_tokens: 8_000 } };
  const reply = gateway.post('/generate', body);
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(3);
  await gateway.post('/abort_request', { rid: 'r' });
  expect((await reply).body.meta_info.finish_reason.type).toBe('abort');
  for (;;) {
    const { leases } = await bench.client.call(bench.pool, 'lb.status', {});
    if (leases === 0) break;
  }
  expect(await inEngine(bench.engine.url)).toBe(0);
});

it('answers the registration of an engine only after the engine has answered its health route', async () => {
  const { url } = bench.engine;
  await inject(url, { kind: 'unhealthy' });
  const refused = await gateway.post('/workers', { url });
  expect([refused.status, refused.body.error.type]).toEqual([502, 'ENGINE_ERROR']);
  expect(await servers()).toEqual([]);
  await inject(url, { kind: 'none' });
  expect((await gateway.post('/workers', { url })).status).toBe(202);
  const answer = await gateway.post('/generate', { input_ids: [1], sampling_params: { max_new_tokens: 3 } });
  expect(answer.body.output_ids).toHaveLength(3);
});

it('refuses an address that is no engine, and changes by a client', async () => {
  const fetchErrorCode = async (body: object) => (await gateway.post('/workers', body)).body.error.type;
  expect(await fetchErrorCode({})).toBe('VALIDATION_FAILED');
  expect(await fetchErrorCode({ url: 'ftp://a' })).toBe('VALIDATION_FAILED');
  expect(await fetchErrorCode({ url: bench.engine.url.replace('//', '//user:password@') })).toBe('VALIDATION_FAILED');
  expect(await fetchErrorCode({ url: bench.engine.url, worker_type: 'prefill' })).toBe('VALIDATION_FAILED');
  expect(await fetchErrorCode({ url: 'http://127.0.0.1:1' })).toBe('ENGINE_UNREACHABLE');
  const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
  const redis = connectRedis({ url: testRedisUrl() });
  const store = new CredentialStore(redis, bench.prefix);
  const keys = await Promise.all((['client', 'trainer'] as const).map((role) => store.create({ name: role, role })));
  const [headers, trainer] = keys.map(({ token }) => ({ authorization: `Bearer ${token}` }));
  expect((await send('GET', '/workers', headers, guarded)).status).toBe(200);
  expect((await send('POST', '/add_worker?url=http://a', headers, guarded)).body.error.type).toBe('FORBIDDEN');
  expect((await send('DELETE', '/workers/s1', headers, guarded)).body.error.type).toBe('FORBIDDEN');
  expect((await send('GET', '/workers', {}, guarded)).status).toBe(401);
  expect(await servers()).toEqual([]);
  const added = await send('POST', `/add_worker?url=${bench.engine.url}`, trainer, guarded);
  expect([added.status, await servers()]).toMatchObject([200, [{}]]);
  expect((await send('POST', `/remove_worker?url=${bench.engine.url}`, trainer, guarded)).status).toBe(200);
  expect(await servers()).toEqual([]);
  await guarded.close();
  redis.disconnect();
});
