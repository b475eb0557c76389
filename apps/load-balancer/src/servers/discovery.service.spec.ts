import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Test } from '@nestjs/testing';
import type { RegisterServerRequest } from '@broomwagon/contracts';
import { EngineAccess, toServerId } from '@broomwagon/engines';
import { Metrics, SchedulerModule, ServiceConfig } from '@broomwagon/platform';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LoadBalancerConfig } from '../load-balancer.config';
import { DiscoveryService } from './discovery.service';
import { EngineHealth } from './engine-health';
import { EngineSources } from './engine-sources';
import { ServersService } from './servers.service';

const engines: Server[] = [];
let keys: (string | undefined)[] = [];

const OPENAI = { '/v1/models': { object: 'list', data: [{ id: 'tiny', object: 'model' }] } };

/** Starts an engine that has these routes only; by default, an OpenAI-compatible engine that lists its model. */
async function startEngine(port = 0, routes: Record<string, object> = OPENAI): Promise<string> {
  const engine = createServer((request, response) => {
    keys.push(request.headers.authorization);
    const found = routes[request.url!];
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  engines.push(engine);
  await new Promise<void>((resolve) => engine.listen(port, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
}

async function discover(engineUrls: string[], sources?: Pick<EngineSources, 'all'>, engineApiKey?: string) {
  const registered: { pool: string; request: RegisterServerRequest }[] = [];
  const register = vi.fn(async (pool: string, request: RegisterServerRequest) => {
    registered.push({ pool, request });
    return { serverId: request.serverId, epoch: 'e1', state: 'ready' as const };
  });
  const drain = vi.fn(async (_pool: string, _request: object) => ({}));
  const config = Object.assign(new LoadBalancerConfig(), { engineUrls, engineApiKey, probeIntervalMs: 50 });
  const platform = [
    { provide: Metrics, useValue: new Metrics('test') },
    { provide: ServiceConfig, useValue: config },
    { provide: LoadBalancerConfig, useValue: config },
  ];
  const module = await Test.createTestingModule({
    imports: [
      { module: class Platform {}, global: true, providers: platform, exports: platform },
      SchedulerModule.forRoot({ pools: () => Promise.resolve([]) }),
    ],
    providers: [
      DiscoveryService,
      sources ? { provide: EngineSources, useValue: sources } : EngineSources,
      { provide: EngineAccess, useValue: new EngineAccess() },
      { provide: ServersService, useValue: { register, drain } },
    ],
  }).compile();
  await module.init();
  return { module, registered, drain };
}

afterEach(() => {
  keys = [];
  for (const engine of engines.splice(0)) engine.close();
});

describe('discovery by a static list', () => {
  it('registers each engine under a name made from its address, always as the same start', async () => {
    const url = await startEngine();
    const { module, registered } = await discover([url]);
    await expect.poll(() => registered.length).toBeGreaterThan(1);
    await module.close();
    expect(new Set(registered.map(({ request }) => JSON.stringify(request))).size).toBe(1);
    expect(registered[0]).toMatchObject({
      pool: 'default',
      request: { serverId: toServerId(url), endpoint: url, dialect: 'openai', model: 'tiny', instanceId: 'unknown' },
    });
  });

  it.each([
    ['sglang', { '/get_server_info': { model_path: 'tiny', weight_version: '8' } }, 8],
    ['sglang', { '/get_server_info': { model_path: 'tiny' }, '/get_model_info': { weight_version: '8' } }, 8],
    ['sglang', { '/get_server_info': { model_path: 'tiny', weight_version: 'default' } }, undefined],
    ['vllm', { ...OPENAI, '/version': { version: '1.0.0' }, '/weight_info': { weight_version: '8' } }, 8],
    ['vllm', { ...OPENAI, '/version': { version: '0.11.0' } }, undefined],
  ])('registers a %s engine with the weights that it reports: %j', async (dialect, routes, weightVersion) => {
    const url = await startEngine(0, routes);
    const { module, registered } = await discover([url]);
    await expect.poll(() => registered.length).toBeGreaterThan(0);
    await module.close();
    expect(registered[0]!.request).toMatchObject({ dialect });
    expect(registered[0]!.request.weightVersion).toBe(weightVersion);
  });

  it('keeps asking an engine that does not answer, and registers the others', async () => {
    const late = await startEngine();
    const port = Number(new URL(late).port);
    await new Promise((resolve) => engines.pop()?.close(resolve));
    const url = await startEngine();
    const { module, registered } = await discover([late, url]);
    await expect.poll(() => registered.some(({ request }) => request.endpoint === url)).toBe(true);
    expect(registered.some(({ request }) => request.endpoint === late)).toBe(false);
    await startEngine(port);
    await expect.poll(() => registered.some(({ request }) => request.endpoint === late)).toBe(true);
    await module.close();
  });

  it('drains an engine that its source lists as terminating, and does not register it', async () => {
    const url = await startEngine();
    const sources = { all: [{ engines: () => Promise.resolve([{ url, drainMs: 7_000 }]) }] };
    const { module, registered, drain } = await discover([], sources);
    await expect.poll(() => drain.mock.calls.length).toBeGreaterThan(0);
    await module.close();
    expect(drain.mock.calls[0]).toEqual(['default', { serverId: toServerId(url), deadlineMs: 7_000 }]);
    expect(registered).toEqual([]);
  });

  it('asks with the key of the engines', async () => {
    const url = await startEngine();
    const { module, registered } = await discover([url], undefined, 'sesame');
    await expect.poll(() => registered.length).toBeGreaterThan(0);
    const health = new EngineHealth(
      Object.assign(new LoadBalancerConfig(), { engineApiKey: 'sesame', engineApiKeys: ['other=tool'] }),
      new EngineAccess(['127.0.0.1']),
    );
    expect(await health.answers({ pool: 'p', dialect: 'openai', endpoint: url }, 5_000)).toBe(true);
    await module.close();
    expect(new Set(keys)).toEqual(new Set(['Bearer sesame']));
  });
});
