import { setTimeout as delay } from 'node:timers/promises';
import { connectRedis, FunctionRunner, PoolAudit } from '@broomwagon/state';
import { type ServerHandle, startNats, startRedis } from '@broomwagon/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startEngine, fetchState } from '../lab/engine-simulator/src/test-engine';
import { parseEvents, open, post, type Reply } from './system/gateway';
import { TestSystem } from './system/test-system';

/** `npm run test:faults` sets the factor. */
const IS_LONG = process.env.TEST_RUNS_FACTOR !== undefined;
const CLIENTS = IS_LONG ? 100 : 16;
const NEW_CLIENTS = IS_LONG ? 20 : 4;
/** The shortest outage, milliseconds; it also lasts until the streams have made progress. */
const AWAY_MS = IS_LONG ? 5_000 : 500;
const TOKENS = 2_000;
/** Speeds of about 5 and 2,500 tokens a second for each response. */
const SLOW = 0.1;
const FAST = 50;
const MAX_TRIES = 200;
const GATEWAYS = ['gateway-1', 'gateway-2'];

type Engine = Awaited<ReturnType<typeof startEngine>>;

let servers: Record<'NATS' | 'Redis', ServerHandle>;
let system: TestSystem;
let engine: Engine;
let starts = 0;

beforeEach(async () => {
  const [nats, redis] = await Promise.all([startNats(), startRedis()]);
  servers = { NATS: nats, Redis: redis };
  system = await TestSystem.start({ natsUrl: nats.url, redisUrl: redis.url, workers: 0, engines: 0, coordinators: 0 });
  await startAt(SLOW);
  const environment = { API_KEYS: 'off', INCREMENTAL_STREAMS: 'true', WORKER_TTL_MS: '3000', REJOIN_MS: '600000' };
  await Promise.all(GATEWAYS.map((name) => system.startApp('gateway', name, environment)));
});
afterEach(async () => {
  await system?.stop();
  await engine?.close();
  await Promise.all(Object.values(servers ?? {}).map((server) => server.stop()));
});

/** Starts the engine, in the place of an earlier one. */
async function startAt(speed: number): Promise<void> {
  const port = Number(new URL(engine?.url ?? 'http://host:0').port);
  await engine?.close();
  const lengths = { name: 'test', getLength: () => 8_000 };
  engine = await startEngine('sglang', { speed, lengths, ports: [port], streamMs: 50 });
  starts += 1;
  const server = { serverId: 's', endpoint: engine.url, dialect: 'sglang', instanceId: `i${starts}` } as const;
  await system.call('server.register', { ...server, maxInflight: 512 });
}

const toUrl = (name: string) => `http://127.0.0.1:${system.port(name)}/generate`;
const buildBody = (index: number) => ({
  rid: `client-${index}`,
  input_ids: [1_000 + index, 7],
  sampling_params: { max_new_tokens: TOKENS, temperature: 0, sampling_seed: index },
  stream: index % 2 === 0,
});

/** Sends the request of a client, and repeats it while the error is retryable. Returns the token ids of the answer. */
async function fetchIds(index: number, names = GATEWAYS): Promise<number[]> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const reply = await post(toUrl(names[(index + tries) % names.length]!), buildBody(index)).catch(() => undefined);
    if (reply !== undefined) {
      const events = (typeof reply.body === 'string' ? parseEvents(reply.body) : [reply.body]) as Reply['body'][];
      const error = events.find((event) => event?.error)?.error;
      if (error === undefined && reply.status === 200) return events.flatMap((event) => event?.output_ids ?? []);
      expect(error, `the error of client ${index}`).toMatchObject({ retryable: true });
      if (error.code === 503) expect(reply.headers['retry-after']).toBeDefined();
    }
    await delay(100);
  }
  throw new Error(`Client ${index} has no answer after ${MAX_TRIES} tries`);
}

const clients = (from: number, count: number, names?: string[]) =>
  Array.from({ length: count }, (_, index) => fetchIds(from + index, names));
const running = async () => (await fetchState(engine.url)).running;
const madeSoFar = async () => (await fetchState(engine.url)).tokensMade;
async function readMetric(name: string, metric: string): Promise<number> {
  return Number(new RegExp(`^broomwagon_${metric}\\S* (\\d+)$`, 'm').exec(await system.metrics(name))?.[1] ?? 0);
}

/** Checks that each answer has the tokens of an uncut response, no lease is left, and the counts agree. */
async function expectWhole(answers: Promise<number[]>[]): Promise<void> {
  const got = await Promise.all(answers);
  const reference = await startEngine('sglang', { speed: 1_000, lengths: { name: 'test', getLength: () => 8_000 } });
  try {
    for (const [index, ids] of got.entries()) {
      const { body } = await post(`${reference.url}/generate`, { ...buildBody(index), stream: false });
      expect(ids, `client ${index}`).toEqual(body.output_ids);
    }
  } finally {
    await reference.close();
  }
  expect((await fetchState(engine.url)).resumeMismatches).toBe(0);
  await expect.poll(running).toBe(0);
  await system.expectNothingHeld(60_000);
  const redis = connectRedis({ url: system.redisUrl });
  const audit = new PoolAudit(redis, new FunctionRunner(redis, system.keyPrefix));
  await expect.poll(async () => (await audit.run(system.pool)).findings).toEqual([]);
  redis.disconnect();
}

/** How the test makes a server unreachable, and how it makes it reachable again. */
const WAYS: Record<string, [(server: ServerHandle) => Promise<void>, (server: ServerHandle) => Promise<void>]> = {
  killed: [(server) => server.kill(), (server) => server.restart()],
  frozen: [(server) => server.pause(), (server) => server.resume()],
};
const OUTAGES: ['NATS' | 'Redis', string][] = [
  ['NATS', 'killed'],
  ['Redis', 'frozen'],
];
if (IS_LONG) OUTAGES.push(['NATS', 'frozen'], ['Redis', 'killed']);

describe(`under ${CLIENTS} streams`, () => {
  it.each(OUTAGES)('%s is %s: streams go on, new requests wait, and nothing is lost', async (kind, way) => {
    const [away, back] = WAYS[way]!;
    const answers = clients(0, CLIENTS);
    for (const one of answers) one.catch(() => undefined);
    await expect.poll(running, { timeout: 60_000 }).toBe(CLIENTS);
    const before = await madeSoFar();
    const received = async () =>
      (await readMetric('gateway-1', 'tokens_generated_total')) +
      (await readMetric('gateway-2', 'tokens_generated_total'));
    const got = await received();
    await away(servers[kind]);
    const asked = performance.now();
    answers.push(...clients(CLIENTS, NEW_CLIENTS));
    for (const one of answers) one.catch(() => undefined);
    // Each stream gets tokens meanwhile, from the engine through its replica.
    await expect.poll(madeSoFar, { timeout: 60_000 }).toBeGreaterThan(before + 2 * CLIENTS);
    await expect.poll(received, { timeout: 60_000 }).toBeGreaterThan(got + CLIENTS);
    await delay(Math.max(0, AWAY_MS - (performance.now() - asked)));
    expect((await fetchState(engine.url)).requests.abort).toBe(0);
    await back(servers[kind]);
    await expect.poll(running, { timeout: 60_000 }).toBe(CLIENTS + NEW_CLIENTS);
    await startAt(FAST);
    await expectWhole(answers);
  });
});

it('a replica that was frozen for longer than its epoch sends no token twice, and frees no lease of another', async () => {
  const stayers = CLIENTS / 2;
  const answers = clients(0, stayers, ['gateway-1']);
  const leaving = Array.from({ length: stayers }, (_, index) => open(toUrl('gateway-1'), buildBody(stayers + index)));
  await expect.poll(running, { timeout: 60_000 }).toBe(CLIENTS);
  const frozen = system.process('gateway-1');
  await expect.poll(() => system.redis.savedPartials(), { timeout: 60_000 }).toBe(CLIENTS);
  frozen.pause();
  for (const one of leaving) one.destroy();
  answers.push(...clients(stayers, stayers, ['gateway-2']));
  for (const one of answers) one.catch(() => undefined);
  // The epoch of the frozen replica has expired with its leases. The other replica has the remaining ones.
  const leases = async () => (await system.call('lb.status', {})).leases;
  await expect
    .poll(() => readMetric('gateway-2', 'gateway_restored_tokens_total'), { timeout: 60_000 })
    .toBeGreaterThan(0);
  await expect.poll(leases, { timeout: 60_000 }).toBe(stayers);
  frozen.resume();
  await expect.poll(() => readMetric('gateway-1', 'worker_fences_total'), { timeout: 60_000 }).toBe(1);
  // Each client has one running response, at its own replica, or at the other one, which has taken it over.
  await expect.poll(leases, { timeout: 60_000 }).toBe(CLIENTS);
  await expect.poll(running, { timeout: 60_000 }).toBe(CLIENTS);
  expect(await readMetric('gateway-1', 'gateway_generations_running')).toBe(stayers);
  expect(await readMetric('gateway-2', 'gateway_generations_running')).toBe(stayers);
  await startAt(FAST);
  await expectWhole(answers);
});

it('a request with several choices that two replicas have got is answered whole by the surviving replica', async () => {
  const body = buildBody(1);
  const several = { ...body, sampling_params: { ...body.sampling_params, n: 3 } };
  const answers = GATEWAYS.map((name) => post(toUrl(name), several).catch(() => undefined));
  await expect.poll(running, { timeout: 60_000 }).toBe(3);
  await expect.poll(() => readMetric('gateway-1', 'gateway_generations_running')).toBe(3);
  await expect.poll(() => readMetric('gateway-2', 'gateway_generations_running')).toBe(3);
  await expect.poll(() => system.redis.savedPartials(), { timeout: 60_000 }).toBe(3);
  const made = await Promise.all(GATEWAYS.map((name) => readMetric(name, 'tokens_generated_total')));
  const holder = made[0]! > 0 ? 0 : 1;
  expect(made[1 - holder]).toBe(0);
  system.process(GATEWAYS[holder]!).kill('SIGKILL');
  const restored = () => readMetric(GATEWAYS[1 - holder]!, 'gateway_restored_tokens_total');
  await expect.poll(restored, { timeout: 60_000 }).toBeGreaterThan(2);
  await expect.poll(running, { timeout: 60_000 }).toBe(3);
  await startAt(FAST);
  const answer = await answers[1 - holder];
  expect([await answers[holder], answer?.status]).toEqual([undefined, 200]);
  const alone = { ...several, sampling_params: body.sampling_params };
  for (const [index, { output_ids: ids }] of (answer!.body as Reply['body'][]).entries()) {
    const sampling_params = { ...body.sampling_params, sampling_seed: 1 + index };
    const whole = await post(`${engine.url}/generate`, { ...alone, sampling_params });
    expect(ids).toEqual(whole.body.output_ids);
  }
  await system.expectNothingHeld(60_000);
});
