import { request as httpRequest } from 'node:http';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { loadConfig } from '@broomwagon/platform';
import { testRedisUrl } from '@broomwagon/testing';
import { describe, expect, it } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import { inject } from '../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, Gateway } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

const PAGE = 'https://app.example';
const messages = [{ role: 'user', content: 'How many clips?' }];
const system = useGateway(12, { dialect: 'vllm', speed: 20 });
const start = (settings: Partial<GatewayConfig>) => Gateway.start(system.bench.prefix, system.bench.pool, settings);

/** Unlike `fetch`, it sends any `Host` and `Origin`. */
function send(method: string, url: string, headers: Record<string, string>) {
  return new Promise<{ status: number; headers: Record<string, unknown> }>((resolve, reject) => {
    const sent = httpRequest(url, { method, headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve({ status: response.statusCode!, headers: response.headers }));
    });
    sent.on('error', reject).end();
  });
}

it('lists one model, and answers 404 for a model that no server has', async () => {
  const { body: list } = await system.gateway.get('/v1/models');
  expect(await system.gateway.get('/v1/models/simulated')).toMatchObject({ status: 200, body: list.data[0] });
  for (const id of ['other', 'org%2Fother', 'org/other']) {
    const { status, body } = await system.gateway.get(`/v1/models/${id}`);
    expect([status, body.error.code]).toEqual([404, 'model_not_found']);
  }
  await system.startSecond({ model: 'org/b' });
  await system.registerSecond({ model: 'org/b' });
  for (const id of ['org%2Fb', 'org/b']) {
    expect((await system.gateway.get(`/v1/models/${id}`)).body.id).toBe('org/b');
  }
});

it('shows a page about itself in a browser, without a key', async () => {
  const { status, headers, body } = await system.gateway.get('/');
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect(body).toContain('<title>Broomwagon gateway</title>');
  expect((await system.gateway.post('/', {})).status).toBe(405);
});

it.each([
  ['/v1/completions', { prompt: 'a', max_tokens: 2 }],
  ['/v1/chat/completions', { messages, max_tokens: 2 }],
  ['/v1/messages', { messages, max_tokens: 2 }],
  ['/v1/responses', { input: 'a', max_output_tokens: 2 }],
])('%s names the model of the engine if the request names none', async (path, body) => {
  expect((await system.gateway.post(path, body)).body.model).toBe('simulated');
  const events = String((await system.gateway.post(path, { ...body, stream: true })).body);
  expect(new Set(events.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"simulated"']));
});

describe('pages of other origins', () => {
  const preflight = { origin: PAGE, 'access-control-request-method': 'POST' };
  const allowed = (headers: Record<string, unknown>) => headers['access-control-allow-origin'];

  it('get no headers of CORS by default', async () => {
    const { status, headers } = await send('OPTIONS', `${system.gateway.url}/v1/models`, preflight);
    expect([status, allowed(headers), headers.vary]).toEqual([405, undefined, undefined]);
  });

  it('may read answers, errors too, if CORS_ORIGINS names their origin', async () => {
    const gateway = await start({ corsOrigins: [PAGE] });
    const url = `${gateway.url}/v1/models`;
    const names = { 'access-control-request-headers': 'authorization,x-session-id' };
    const asked = await send('OPTIONS', url, { ...preflight, ...names });
    expect([asked.status, asked.headers]).toMatchObject([
      204,
      { 'access-control-allow-origin': PAGE, 'access-control-allow-headers': 'authorization,x-session-id' },
    ]);
    const read = await send('GET', url, { origin: PAGE });
    expect([read.status, allowed(read.headers), read.headers.vary]).toEqual([200, PAGE, 'Origin']);
    const missing = await send('GET', `${gateway.url}/nothing`, { origin: PAGE });
    expect([missing.status, allowed(missing.headers)]).toEqual([404, PAGE]);
    // Without keys, other pages are refused as before, and read nothing.
    const other = await send('GET', url, { origin: 'https://other.example' });
    expect([other.status, allowed(other.headers)]).toEqual([403, undefined]);
    await gateway.close();
  });

  it('may all be allowed only with keys, and a value that is no origin is refused at start', () => {
    const load = (env: Record<string, string>) => loadConfig(GatewayConfig, { env });
    expect(load({ CORS_ORIGINS: '*' }).corsOrigins).toEqual(['*']);
    expect(() => load({ CORS_ORIGINS: '*', API_KEYS: 'off' })).toThrow(/CORS_ORIGINS/);
    for (const value of ['app.example', `${PAGE}/`, 'null']) {
      expect(() => load({ CORS_ORIGINS: value })).toThrow(/CORS_ORIGINS/);
    }
  });
});

it('shows metrics to this machine only while it has no keys', async () => {
  const metrics = `${system.gateway.url}/metrics`;
  expect((await send('GET', metrics, {})).status).toBe(200);
  expect((await send('GET', metrics, { host: 'rebound.example:80' })).status).toBe(403);
  expect((await send('GET', metrics, { origin: PAGE })).status).toBe(403);
  expect((await send('GET', `${system.gateway.url}/livez`, { host: 'rebound.example:80' })).status).toBe(200);
  const guarded = await start({ apiKeys: 'on' });
  expect((await send('GET', `${guarded.url}/metrics`, { host: 'prometheus.example' })).status).toBe(200);
  await guarded.close();
});

it('shows the addresses of engines to trainers, and not to clients', async () => {
  const gateway = await start({ apiKeys: 'on', maxEngineFailures: 1 });
  // The only engine fails all calls: without this, no failure would count against a request.
  await system.bench.client.call(system.bench.pool, 'pool.configure', { breakerFailures: 0 });
  const redis = connectRedis({ url: testRedisUrl() });
  const store = new CredentialStore(redis, system.bench.prefix);
  const errorFor = async (role: 'client' | 'trainer', more: object) => {
    const { token } = await store.create({ name: role, role });
    await inject(
      system.bench.engine.url,
      'stream' in more ? { kind: 'error-in-stream', afterTokens: 2 } : { kind: 'html' },
    );
    const body = { prompt: 'a', max_tokens: 9, ...more };
    const { status, body: answer } = await gateway.post('/v1/completions', body, { authorization: `Bearer ${token}` });
    const { error } = (status === 200 ? parseEvents(answer).at(-2) : answer) as { error: { message: string } };
    return error.message;
  };
  for (const more of [{}, { stream: true }]) {
    expect(await errorFor('trainer', more)).toContain(system.bench.engine.url);
    const shown = await errorFor('client', more);
    expect(shown).toContain('the engine');
    expect(shown).not.toContain('127.0.0.1');
  }
  redis.disconnect();
  await gateway.close();
});

it('listens on a fixed port by default', () => {
  expect(new GatewayConfig().httpPort).toBe(30_000);
});
