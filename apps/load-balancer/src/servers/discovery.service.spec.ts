import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Test } from '@nestjs/testing';
import type { RegisterServerRequest } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LoadBalancerConfig } from '../load-balancer.config';
import { DiscoveryService, serverIdOf } from './discovery.service';
import { EngineSources } from './engine-sources';
import { ServersService } from './servers.service';

const engines: Server[] = [];

/** An OpenAI-compatible engine that only says which model it has. */
async function startEngine(port = 0): Promise<string> {
  const engine = createServer((request, response) => {
    const found = request.url === '/v1/models';
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ? { object: 'list', data: [{ id: 'tiny', object: 'model' }] } : {}));
  });
  engines.push(engine);
  await new Promise<void>((resolve) => engine.listen(port, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
}

async function discover(engineUrls: string[]) {
  const registered: { pool: string; request: RegisterServerRequest }[] = [];
  const register = vi.fn(async (pool: string, request: RegisterServerRequest) => {
    registered.push({ pool, request });
    return { serverId: request.serverId, epoch: 1, state: 'ready' as const };
  });
  const module = await Test.createTestingModule({
    providers: [
      DiscoveryService,
      EngineSources,
      Metrics,
      {
        provide: LoadBalancerConfig,
        useValue: Object.assign(new LoadBalancerConfig(), { engineUrls, probeIntervalMs: 50 }),
      },
      { provide: ServersService, useValue: { register } },
    ],
  }).compile();
  await module.init();
  return { module, registered };
}

afterEach(() => {
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
      request: { serverId: serverIdOf(url), endpoint: url, dialect: 'openai', model: 'tiny', instanceId: 'unknown' },
    });
  });

  it('goes on asking for an engine that does not answer, and registers the others', async () => {
    const late = await startEngine();
    const port = Number(new URL(late).port);
    await new Promise((resolve) => engines.pop()?.close(resolve));
    const url = await startEngine();
    const { module, registered } = await discover([late, url]);
    await expect.poll(() => registered.some(({ request }) => request.endpoint === url)).toBe(true);
    expect(registered.some(({ request }) => request.endpoint === late)).toBe(false);
    await startEngine(port);
    await expect
      .poll(() => registered.some(({ request }) => request.endpoint === late), { timeout: 10_000 })
      .toBe(true);
    await module.close();
  });
});
