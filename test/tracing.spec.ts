import { spawnSync } from 'node:child_process';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hashOfToken } from '@broomwagon/state';
import { requestRaw } from '@broomwagon/testing';
import { headers as makeHeaders } from 'nats';
import { afterEach, expect, it } from 'vitest';
import { startEngine } from '../lab/engine-simulator/src/test-engine';
import { TestSystem } from './system/test-system';

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** 3: client. */
  kind: number;
  /** Code 2: error. */
  status: { code?: number; message?: string };
  attributes: { key: string; value: Record<string, unknown> }[];
}

/** Attributes of a span, and of the process that has sent the span. */
function readAttributes({ attributes }: Pick<Span, 'attributes'>): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function readBody(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await request.toArray()).toString('utf8');
}

/** Collects the spans that OTLP exporters send. */
async function startCollector() {
  const spans: Span[] = [];
  const resources = new Map<string, Record<string, unknown>>();
  const url = await listen(
    createServer(async (request, response) => {
      const { resourceSpans } = JSON.parse(await readBody(request)) as {
        resourceSpans: { resource: Pick<Span, 'attributes'>; scopeSpans: { spans: Span[] }[] }[];
      };
      for (const { resource } of resourceSpans) {
        const attributes = readAttributes(resource);
        resources.set(String(attributes['service.name']), attributes);
      }
      spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans).flatMap((scope) => scope.spans));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    }),
  );
  return { url, spans, resources };
}

/** A simulated engine behind a proxy that keeps the `traceparent` of every generation. */
async function startTracedEngine() {
  const engine = await startEngine('vllm');
  closing.push(() => engine.close());
  const traceparents: string[] = [];
  const url = await listen(
    createServer(async (request, response) => {
      if (request.url!.endsWith('/completions')) traceparents.push(String(request.headers.traceparent));
      const body = await readBody(request);
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(engine.url + request.url, {
        method: request.method,
        headers,
        body: body || undefined,
      });
      const contentType = answer.headers.get('content-type') ?? 'application/json';
      response.writeHead(answer.status, { 'content-type': contentType });
      response.end(await answer.text());
    }),
  );
  return { url, traceparents };
}

async function startTraced(endpoint: string, engineUrl: string): Promise<TestSystem> {
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '50' };
  const system = await TestSystem.start({ engines: 0, workers: 1, environment });
  closing.push(() => system.stop());
  const server = { serverId: 'traced', dialect: 'vllm', model: 'simulated', instanceId: 'first' } as const;
  await system.call('server.register', { ...server, endpoint: engineUrl, maxInflight: 16, weightVersion: 0 });
  return system;
}

async function runRound(system: TestSystem): Promise<void> {
  const groups = [{ groupId: 'g', prompt: { promptTokenIds: [1, 2, 3] }, samples: 2, maxTokens: 64 }];
  const policy = { name: 'resume', overProvision: 1 } as const;
  const { roundId } = await system.openRound('job', { groupsPerStep: 1, groups, policy });
  await expect.poll(async () => (await system.call('round.status', { job: 'job', roundId })).state).toBe('completed');
}

it('exports one trace from round.open to the engine', async () => {
  const [collector, engine] = [await startCollector(), await startTracedEngine()];
  const system = await startTraced(collector.url, engine.url);
  await runRound(system);
  const named = (name: string) => collector.spans.filter((span) => span.name === name);
  await expect.poll(() => named('attempt').length).toBe(2);
  await expect.poll(() => named('process round.open').length).toBe(1);
  const [opened] = named('process round.open');
  expect(engine.traceparents.map((one) => one.split('-')[1])).toEqual([opened!.traceId, opened!.traceId]);
  for (const attempt of named('attempt')) {
    expect(attempt).toMatchObject({ traceId: opened!.traceId, parentSpanId: opened!.spanId });
  }
  // The engine continues the span of its generation.
  expect(engine.traceparents.map((one) => one.split('-')[2]).toSorted()).toEqual(
    named('text_completion simulated')
      .map(({ spanId }) => spanId)
      .toSorted(),
  );
  // The attributes of OpenTelemetry for generative AI, and the names of Broomwagon.
  const [generated] = named('text_completion simulated');
  expect(generated!.kind).toBe(3);
  expect(readAttributes(generated!)).toMatchObject({
    'gen_ai.operation.name': 'text_completion',
    'gen_ai.provider.name': 'vllm',
    'gen_ai.request.model': 'simulated',
    'gen_ai.request.max_tokens': 64,
    'gen_ai.usage.output_tokens': expect.any(Number) as number,
    'gen_ai.response.finish_reasons': { values: [{ stringValue: expect.any(String) as string }] },
    'server.address': '127.0.0.1',
    'broomwagon.pool': system.pool,
    'broomwagon.server_id': 'traced',
  });
  expect(readAttributes(named('attempt')[0]!)).toMatchObject({
    'broomwagon.job': 'job',
    'broomwagon.outcome': 'finished',
  });
  await expect.poll(() => named('round')).toMatchObject([{ traceId: opened!.traceId, parentSpanId: opened!.spanId }]);
  const [one] = collector.resources.values();
  expect(one).toMatchObject({ 'service.instance.id': expect.stringMatching(/^[0-9a-f]{12}$/) as string });
  const ofTrace = () => collector.spans.filter(({ traceId }) => traceId === opened!.traceId).map(({ name }) => name);
  const expected = ['request lb.acquire', 'process lb.acquire', 'process request.complete', 'process lb.release'];
  await expect.poll(ofTrace).toEqual(expect.arrayContaining(expected));
  // A transition is a span of the operation that ran it.
  await expect
    .poll(() => {
      const completes = new Set(named('process request.complete').map(({ spanId }) => spanId));
      return collector.spans.filter(({ name, parentSpanId }) => /complete/.test(name) && completes.has(parentSpanId!));
    })
    .toHaveLength(2);

  // A caller that is traced itself finds the operation in its trace.
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const headers = makeHeaders();
  headers.set('traceparent', `00-${traceId}-b7ad6b7169203331-01`);
  const { nats } = system.client.messaging.connection;
  await requestRaw(nats, `rollout.v1.${system.pool}.lb.status`, '{}', { headers });
  await expect
    .poll(() => collector.spans.filter((span) => span.traceId === traceId))
    .toContainEqual(expect.objectContaining({ name: 'process lb.status', parentSpanId: 'b7ad6b7169203331' }));
});

it('has the gateway, admin-api and later calls of the trainer in the trace of a round, and no heartbeat or poll', async () => {
  const collector = await startCollector();
  const system = await startTraced(collector.url, 'http://127.0.0.1:9');
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50' };
  await system.startApp('gateway', 'gateway-1', { API_KEYS: 'off', ...traced });
  const token = 'token-of-the-test';
  await system.startApp('admin-api', 'admin-api-1', { ADMIN_TOKEN_SHA256: hashOfToken(token), ...traced });
  const policy = { name: 'wait' } as const;
  const { kind, step, ...plan } = await system.call('round.next', {
    job: 'job',
    groupsPerStep: 1,
    remainingGroups: 1,
    policy,
  });
  const rest = { job: 'job', roundId: 'r', kind: kind as 'short', step, ...plan, policy };
  const gateway = `http://127.0.0.1:${system.port('gateway-1')}/rounds/v1/${system.pool}`;
  const send = async (url: string, body: object): Promise<{ status: number; body: Record<string, string> }> => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const { body: opened } = await send(`${gateway}/round.open`, rest);
  const groups = [{ groupId: 'g', prompt: { promptTokenIds: [1, 2, 3] }, samples: 1, maxTokens: 8 }];
  const { trainerEpoch = '' } = opened;
  await system.call('round.submit', { job: 'job', roundId: 'r', trainerEpoch, groups });
  const cancel = `http://127.0.0.1:${system.port('admin-api-1')}/api/v1/pools/${system.pool}/jobs/job/rounds/r/cancel`;
  expect(await send(cancel, { mode: 'drop' })).toMatchObject({ status: 200 });
  // An error is the status of its span.
  expect(await send(`${gateway}/round.open`, { ...rest, planId: 'other', roundId: 'r' })).toMatchObject({
    status: 409,
  });

  const { traceparent = '' } = await system.call('round.status', { job: 'job', roundId: 'r' });
  const ofRound = () => collector.spans.filter(({ traceId }) => traceId === traceparent.split('-')[1]);
  await expect
    .poll(() => ofRound().map(({ name }) => name))
    .toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^POST .*round\.open$/),
        'request round.open',
        'process round.open',
        'process round.submit',
        expect.stringMatching(/^POST .*rounds\/\{roundId\}\/cancel$/),
        'request round.cancel',
        'process round.cancel',
      ]),
    );
  await expect
    .poll(() => collector.spans.filter(({ name, status }) => name === 'process round.open' && status.code === 2))
    .toMatchObject([{ status: { message: expect.stringMatching(/^[A-Z_]+$/) as string } }]);
  // Nothing else has begun a trace: no heartbeat, claim or look at a state.
  const begins = collector.spans.filter(({ parentSpanId }) => !parentSpanId).map(({ name }) => name);
  expect(begins.filter((name) => !name.endsWith('round.open'))).toEqual([]);
});

it('continues the trace of a client of the gateway to the engine', async () => {
  const [collector, engine] = [await startCollector(), await startTracedEngine()];
  const system = await startTraced(collector.url, engine.url);
  const traced = { API_KEYS: 'off', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50' };
  await system.startApp('gateway', 'gateway-1', traced);
  const traceId = '0af7651916cd43dd8448eb211c80319d';
  const send = async (headers: Record<string, string>) => {
    const response = await fetch(`http://127.0.0.1:${system.port('gateway-1')}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ prompt: [1, 2, 3], max_tokens: 8 }),
    });
    expect([response.status, await response.json()]).toMatchObject([200, { choices: [{}] }]);
  };
  await send({ traceparent: `00-${traceId}-b7ad6b7169203331-01` });
  const ofTrace = () => collector.spans.filter((span) => span.traceId === traceId);
  const named = (name: string) => ofTrace().find((span) => span.name === name);
  const generation = 'text_completion simulated';
  const expected = ['POST /v1/completions', generation, 'request lb.acquire', 'process lb.acquire'];
  await expect.poll(() => ofTrace().map(({ name }) => name)).toEqual(expect.arrayContaining(expected));
  expect(named('POST /v1/completions')!.parentSpanId).toBe('b7ad6b7169203331');
  // The engine continues the span of its generation.
  expect(engine.traceparents).toEqual([`00-${traceId}-${named(generation)!.spanId}-01`]);

  // A request that is not traced, or names no valid trace, begins none.
  await send({});
  await send({ traceparent: 'none' });
  expect(engine.traceparents.slice(1)).toEqual(['undefined', 'undefined']);
});

it('does not load the SDK without an endpoint, so that it costs nothing', () => {
  const loaded = (endpoint: string): string => {
    const program =
      `require('./dist/libs/platform/src/service/tracing.js').startTracing('app', ${endpoint}).then(() => ` +
      `process.stdout.write(String(Object.keys(require.cache).some((file) => file.includes('/@opentelemetry/sdk-')))))`;
    return spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' }).stdout;
  };
  expect(loaded('undefined')).toBe('false');
  expect(loaded('"http://127.0.0.1:1"')).toBe('true');
});

it('runs and stops in time when the collector does not answer', async () => {
  const engine = await startTracedEngine();
  const silent = await listen(createServer(() => undefined));
  const system = await startTraced(silent, engine.url);
  await runRound(system);
  expect(await system.process('worker-1').stop(20_000)).toEqual({ code: 0, signal: null });
});
