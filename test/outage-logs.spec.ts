import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startNats, startRedis, type ServerHandle } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestSystem } from './system/test-system';

const APPS = ['load-balancer-1', 'trainer-coordinator-1', 'worker-1', 'gateway-1', 'admin-api-1'];
/** Who logs the effects of an outage: alarms, expired workers and expired epochs. */
const EFFECTS = new Set(['Alarms', 'UpkeepService', 'WorkerSession']);
const BEGINS = /^Outage begins: /;
const ENDS = /^Outage has ended: /;

interface Line {
  level: string;
  time: string;
  context?: string;
  err?: object;
  msg: string;
  dependency?: string;
  cause?: string;
  durationMs?: number;
}

let nats: ServerHandle;
let redis: ServerHandle;
let system: TestSystem;

beforeAll(async () => {
  [nats, redis] = await Promise.all([startNats(), startRedis()]);
  system = await TestSystem.start({
    natsUrl: nats.url,
    redisUrl: redis.url,
    workers: 1,
    environment: { LOG_LEVEL: 'info' },
  });
  await system.startApp('gateway', 'gateway-1', { API_KEYS: 'off' });
  await system.startApp('admin-api', 'admin-api-1');
});
afterAll(async () => {
  await system?.stop();
  await Promise.all([nats?.stop(), redis?.stop()]);
});

function readLines(app: string): Line[] {
  const text = readFileSync(join(system.folder, 'logs', `${app}.log`), 'utf8');
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
}
const isOutage = ({ msg }: Line): boolean => BEGINS.test(msg) || ENDS.test(msg);

/** Calls of clients during an outage, each of which fails. */
async function callAll(): Promise<void> {
  const log = readFileSync(join(system.folder, 'logs', 'admin-api-1.log'), 'utf8');
  const [, token] = /Admin token .*: (\S+)/.exec(log)!;
  const signal = AbortSignal.timeout(3_000);
  const calls = [
    fetch(`http://127.0.0.1:${system.port('gateway-1')}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: [1, 2, 3], max_tokens: 8 }),
      signal,
    }),
    fetch(`http://127.0.0.1:${system.port('admin-api-1')}/api/v1/pools/${system.pool}`, {
      headers: { authorization: `Bearer ${token}` },
      signal,
    }),
  ];
  await Promise.allSettled(calls);
}

it.each<[string, () => ServerHandle, (server: ServerHandle) => Promise<unknown>, (server: ServerHandle) => unknown]>([
  ['a killed Redis', () => redis, (server) => server.kill(), (server) => server.restart()],
  ['a frozen Redis', () => redis, async (server) => server.pause(), (server) => server.resume()],
  ['a killed NATS', () => nats, (server) => server.kill(), (server) => server.restart()],
  ['a frozen NATS', () => nats, async (server) => server.pause(), (server) => server.resume()],
])('%s is one line of each service when it begins, one when it ends, and none between', async (_, find, begin, end) => {
  const server = find();
  const before = new Map(APPS.map((app) => [app, readLines(app).length]));
  const since = (app: string) => readLines(app).slice(before.get(app));
  await begin(server);
  for (const app of APPS) await expect.poll(() => since(app).filter(isOutage).length, { message: app }).toBe(1);
  for (let round = 0; round < 3; round += 1) await callAll();
  await end(server);
  for (const app of APPS)
    await expect.poll(() => since(app).filter(({ msg }) => ENDS.test(msg)).length, { message: app }).toBe(1);
  const { host } = new URL(server.url);
  for (const app of APPS) {
    const lines = since(app);
    expect(lines.filter(isOutage)).toMatchObject([
      { level: 'warn', msg: expect.stringContaining(host) as string, cause: expect.stringMatching(/./) as string },
      { level: 'info', msg: expect.stringContaining(host) as string, durationMs: expect.any(Number) as number },
    ]);
    // An outage may have effects, such as expired epochs, but no failed call has a line of its own.
    expect(lines.filter(({ err }) => err !== undefined)).toEqual([]);
    const others = lines.filter((line) => line.level !== 'info' && !isOutage(line));
    expect(others.filter(({ context = '' }) => !EFFECTS.has(context))).toEqual([]);
  }
});
