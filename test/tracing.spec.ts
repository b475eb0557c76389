import { spawnSync } from 'node:child_process';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
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
  const url = await listen(
    createServer(async (request, response) => {
      const { resourceSpans } = JSON.parse(await readBody(request)) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans).flatMap((scope) => scope.spans));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    }),
  );
  return { url, spans };
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
    named('generate')
      .map(({ spanId }) => spanId)
      .toSorted(),
  );
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
  const expected = ['POST /v1/completions', 'generate', 'request lb.acquire', 'process lb.acquire'];
  await expect.poll(() => ofTrace().map(({ name }) => name)).toEqual(expect.arrayContaining(expected));
  expect(named('POST /v1/completions')!.parentSpanId).toBe('b7ad6b7169203331');
  // The engine continues the span of its generation.
  expect(engine.traceparents).toEqual([`00-${traceId}-${named('generate')!.spanId}-01`]);

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
