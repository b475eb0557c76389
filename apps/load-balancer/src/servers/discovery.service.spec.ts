import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { RegisterServerRequest, ServerStatus } from '@broomwagon/contracts';
import { EngineAccess, toServerId } from '@broomwagon/engines';
import { Alarms, Metrics, SchedulerModule, ServiceConfig } from '@broomwagon/platform';
import { ServerStore } from '@broomwagon/state';
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

async function discover(
  engineUrls: string[],
  sources?: Pick<EngineSources, 'all'>,
  engineApiKey?: string,
  known: Partial<ServerStatus>[] = [],
) {
  const registered: { pool: string; request: RegisterServerRequest }[] = [];
  const register = vi.fn(async (pool: string, request: RegisterServerRequest) => {
    registered.push({ pool, request });
    return { serverId: request.serverId, epoch: 'e1', state: 'ready' as const };
  });
  const drain = vi.fn(async (_pool: string, _request: object, _listedAs: string) => ({}));
  const withhold = vi.fn(async (_pool: string, _server: object) => ({}));
  const pages = async function* () {
    yield { servers: known };
  };
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
      { provide: ServersService, useValue: { register, drain, withhold } },
      { provide: ServerStore, useValue: { pages } },
      Alarms,
    ],
  }).compile();
  await module.init();
  return { module, registered, register, drain, withhold };
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
    const known = [{ serverId: toServerId(url), listedAs: toServerId(url) }];
    const { module, registered, drain } = await discover([], sources, undefined, known);
    await expect.poll(() => drain.mock.calls.length).toBeGreaterThan(0);
    await module.close();
    const serverId = toServerId(url);
    expect(drain.mock.calls[0]).toEqual(['default', { serverId, deadlineMs: 7_000 }, serverId]);
    expect(registered).toEqual([]);
  });

  it('ends new requests of engines that are not ready or no longer listed, unless a source cannot be read', async () => {
    const url = await startEngine();
    const known = [
      { serverId: toServerId(url), listedAs: 'pod-1' },
      { serverId: 'gone', listedAs: 'pod-2' },
      { serverId: 'by-name' },
    ];
    const engines = () => Promise.resolve([{ url, identity: 'pod-1', isNotReady: true as const }]);
    const { module, registered, drain, withhold } = await discover([], { all: [{ engines }] }, undefined, known);
    await expect.poll(() => drain.mock.calls.length).toBeGreaterThan(0);
    await module.close();
    expect(withhold.mock.calls[0]).toEqual(['default', { serverId: toServerId(url), listedAs: 'pod-1' }]);
    expect(new Set(drain.mock.calls.map(([, , listedAs]) => listedAs))).toEqual(new Set(['pod-2']));
    expect(registered).toEqual([]);

    const broken = { engines: () => Promise.reject(new Error('not readable')) };
    const second = await discover([], { all: [{ engines }, broken] }, undefined, known);
    await expect.poll(() => second.withhold.mock.calls.length).toBeGreaterThan(1);
    await second.module.close();
    expect(second.drain.mock.calls).toEqual([]);
  });

  it('raises an alarm while most engines are listed no more at once', async () => {
    const url = await startEngine();
    const gone = ['gone-1', 'gone-2', 'gone-3'].map((serverId) => ({ serverId, listedAs: serverId }));
    const known = [{ serverId: toServerId(url), listedAs: 'pod-1' }, ...gone];
    const engines = () => Promise.resolve([{ url, identity: 'pod-1' }]);
    const { module } = await discover([], { all: [{ engines }] }, undefined, known);
    const page = () => module.get(Metrics).text();
    const alarm = /alarms_active{pool="default",alarm="engines-vanished"[^}]*} (\d)/;
    await expect.poll(async () => alarm.exec(await page())?.[1]).toBe('1');
    expect(await page()).toMatch(/alarms_total{alarm="engines-vanished"[^}]*} 1/);
    known.splice(1);
    await expect.poll(async () => alarm.exec(await page())?.[1]).toBe('0');
    await module.close();
  });

  it('logs once that a listed engine is left out, because its server was drained by name', async () => {
    const url = await startEngine();
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const { module, register } = await discover([url]);
    register.mockImplementation(async (_pool, request) => {
      return { serverId: request.serverId, epoch: 'e1', state: 'removed' as never };
    });
    const before = register.mock.calls.length;
    await expect.poll(() => register.mock.calls.length).toBeGreaterThan(before + 3);
    await module.close();
    const lines = warn.mock.calls.filter(([, message]) => message === 'A listed engine is left out');
    warn.mockRestore();
    expect(lines).toHaveLength(1);
    expect(lines[0]![0]).toMatchObject({ url, serverId: toServerId(url), reason: expect.stringContaining('by name') });
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
