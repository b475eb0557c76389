import { loadConfig } from '@broomwagon/platform';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { describe, expect, it, vi } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import { parseEvents, Gateway, type Reply } from '../../../../test/system/gateway';
import { expectSame, generate, LONG, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(4);

describe('keys', () => {
  it('that are off let no web page in', async () => {
    const page = { origin: 'https://example.org' };
    const { status, body } = await system.gateway.post('/generate', generate(1), page);
    expect([status, body.error.type]).toEqual([403, 'FORBIDDEN']);
    expect((await system.gateway.get('/flush_cache', { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await system.gateway.post('/v1/completions', {}, { host: 'example.org' })).status).toBe(403);
    expect((await system.gateway.get('/health', page)).status).toBe(200);
    const publicUrl = 'https://gateway.example';
    const proxied = await Gateway.start(system.bench.prefix, system.bench.pool, { publicUrl });
    expect((await proxied.post('/generate', generate(1), { host: 'gateway.example' })).status).toBe(200);
    await proxied.close();
  });

  it('may have limits, of generations at the same time and of requests in a minute', async () => {
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, system.bench.prefix);
    const guarded = await Gateway.start(system.bench.prefix, system.bench.pool, { apiKeys: 'on' });
    const createKey = async (limits: { maxGenerations?: number; maxPerMinute?: number }) => {
      const { token } = await store.create({ name: 'a', role: 'client', ...limits });
      return { authorization: `Bearer ${token}` };
    };
    const narrow = await createKey({ maxGenerations: 1 });
    const batch = generate(1, { input_ids: [[5], [6]] });
    const larger = await guarded.post('/generate', batch, narrow);
    expect([larger.status, larger.body.error.type, larger.body.error.retryable]).toEqual([
      400,
      'VALIDATION_FAILED',
      false,
    ]);
    const two = await createKey({ maxGenerations: 2 });
    const running = guarded.post('/generate', generate(8_000), narrow);
    await system.hasTokens();
    const second = await guarded.post('/generate', generate(1), narrow);
    expect([second.status, second.body.error.type, second.headers['retry-after']]).toEqual([429, 'RATE_LIMITED', '1']);
    expect((await guarded.post('/generate', generate(1), await createKey({}))).status).toBe(200);
    const one = guarded.post('/generate', generate(8_000), two);
    await expect.poll(async () => (await system.leases()).leases).toBe(2);
    expect((await guarded.post('/generate', batch, two)).body.error.type).toBe('RATE_LIMITED');
    await guarded.post('/abort_request', { abort_all: true }, two);
    await guarded.post('/abort_request', { abort_all: true }, narrow);
    await Promise.all([running, one]);
    expect((await guarded.post('/generate', batch, two)).status).toBe(200);
    // The refused batches have started no response.
    const { body: metrics } = await guarded.get('/metrics');
    expect(metrics).toMatch(/^broomwagon_gateway_generations_total{.*outcome="abort".*} 2$/m);
    expect((await guarded.post('/generate', generate(1), narrow)).status).toBe(200);
    const rare = await createKey({ maxPerMinute: 2 });
    const replies = [];
    for (let request = 0; request < 3; request++) replies.push(await guarded.get('/v1/models', rare));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(Number(replies[2]!.headers['retry-after'])).toBeGreaterThan(1);
    await guarded.close();
    redis.disconnect();
  });

  it('that are revoked are refused by every replica after 5 s; responses that run go on', async () => {
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, system.bench.prefix);
    const start = () => Gateway.start(system.bench.prefix, system.bench.pool, { apiKeys: 'on' });
    const replicas = await Promise.all([start(), start()]);
    const { token, tokenId } = await store.create({ name: 'a', role: 'client' });
    const key = { authorization: `Bearer ${token}` };
    const statuses = () =>
      Promise.all(replicas.map(async (one) => (await one.post('/tokenize', { prompt: 'a' }, key)).status));
    const answers = replicas.map((one, index) =>
      one.post('/generate', generate(LONG, { stream: true, rid: `r${index}` }), key),
    );
    for (const one of replicas) await expect.poll(() => one.metric('tokens_generated_total')).toBeGreaterThan(5);
    expect(await statuses()).not.toContain(401);
    expect(await store.revoke(tokenId)).toBe(true);
    const now = Date.now.bind(Date);
    const later = vi.spyOn(Date, 'now').mockImplementation(() => now() + 5_000);
    expect(await statuses()).toEqual([401, 401]);
    later.mockRestore();
    const whole = await system.uncut(LONG);
    for (const answer of await Promise.all(answers)) {
      const last = parseEvents(answer.body).at(-2) as Reply['body'];
      expectSame({ ...answer, body: last }, whole);
    }
    for (const one of replicas) await one.close();
    redis.disconnect();
  });

  it('are needed outside loopback, and are tokens of the role client with this pool', async () => {
    const env = { API_KEYS: 'off', HTTP_HOST: '0.0.0.0' };
    expect(() => loadConfig(GatewayConfig, { env })).toThrow(/API_KEYS: can be off only if/);
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, system.bench.prefix);
    const guarded = await Gateway.start(system.bench.prefix, system.bench.pool, { apiKeys: 'on' });
    const fetchStatus = async (token: string | undefined, path = '/generate') => {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return (await guarded.post(path, generate(1), headers)).status;
    };
    const client = await store.create({ name: 'a', role: 'client', pools: [system.bench.pool] });
    const elsewhere = await store.create({ name: 'b', role: 'client', pools: ['another'] });
    const viewer = await store.create({ name: 'c', role: 'viewer' });
    expect(await fetchStatus(undefined)).toBe(401);
    expect(await fetchStatus('bw_0000000000000000_wrong')).toBe(401);
    expect(await fetchStatus(elsewhere.token)).toBe(403);
    expect(await fetchStatus(viewer.token)).toBe(403);
    expect(await fetchStatus(client.token)).toBe(200);
    expect(await fetchStatus(`${client.token}.session`)).toBe(200);
    expect(await fetchStatus(undefined, '/abort_request')).toBe(401);
    expect((await guarded.get('/health')).status).toBe(200);
    const sessions = async () => {
      const page = await system.bench.client.call(system.bench.pool, 'lb.sessions', {});
      return page.sessions.map(({ sessionId }) => sessionId);
    };
    expect(await sessions()).toEqual([`${client.tokenId}/session`]);

    const running = guarded.post('/generate', generate(8_000, { rid: 'r' }), {
      authorization: `Bearer ${client.token}`,
    });
    await system.hasTokens();
    const others = await store.create({ name: 'd', role: 'client' });
    const finish = async ({ token }: { token: string }) => {
      const bearer = { authorization: `Bearer ${token}` };
      return (await guarded.post('/finish_session', { session_id: 'session' }, bearer)).body.finished;
    };
    expect([await finish(others), (await sessions()).length, await finish(client)]).toEqual([false, 1, true]);
    await guarded.post('/abort_request', { abort_all: true }, { authorization: `Bearer ${others.token}` });
    expect((await system.leases()).leases).toBe(1);
    const operator = await store.create({ name: 'e', role: 'operator' });
    await guarded.post('/abort_request', { abort_all: true }, { authorization: `Bearer ${operator.token}` });
    expect((await running).body.meta_info.finish_reason.type).toBe('abort');
    await guarded.close();
    redis.disconnect();
  });
});
