import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type ServerHandle, startNats, startRedis } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from '../system/test-system';
import { pythonEnvironment } from './pytest';

const python = (process.env.CLIENT_PYTHONS ?? '').split(' ').at(-1);
const OUTAGE_MS = 5_000;

describe.skipIf(!python)('callers of the client for Python that handle no errors', () => {
  let nats: ServerHandle;
  let redis: ServerHandle;
  let system: TestSystem;

  beforeAll(async () => {
    [nats, redis] = await Promise.all([startNats(), startRedis({ configuration: 'appendfsync always' })]);
    const environment = { WORKER_TTL_MS: '15000' };
    system = await TestSystem.start({
      balancers: 2,
      workers: 0,
      natsUrl: nats.url,
      redisUrl: redis.url,
      environment,
    });
  });
  afterAll(async () => {
    await system?.stop();
    await Promise.all([nats?.stop(), redis?.stop()]);
  });

  const outages: [string, () => Promise<unknown>][] = [
    [
      'a replica of the load-balancer is killed',
      async () => {
        const replica = system.process('load-balancer-1');
        replica.kill('SIGKILL');
        await replica.exited;
        await replica.start();
      },
    ],
    ['NATS is away for 5 s', () => away(nats)],
    ['Redis is away for 5 s', () => away(redis)],
  ];

  async function away(server: ServerHandle): Promise<void> {
    await server.kill();
    await delay(OUTAGE_MS);
    await server.restart();
  }

  it.each(outages)('continue when %s, and no lease is left', async (_, outage) => {
    const child = spawn(python!, ['tests/under_outages.py'], pythonEnvironment(system));
    const closed = once(child, 'close') as Promise<[number | null]>;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
    await expect.poll(() => output, { timeout: 60_000 }).toContain('ready');
    await outage();
    child.stdin.write('end\n');
    const [code] = await closed;
    expect([code, output]).toEqual([0, expect.stringContaining('"leases"')]);
    await system.expectAtRest();
    const { findings } = await system.call('pool.audit', {});
    expect(findings).toEqual([]);
  });
});
