import { setTimeout as delay } from 'node:timers/promises';
import { PAUSE_MODES, type PauseMode } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { startEngine, fetchState } from '../lab/engine-simulator/src/test-engine';
import { findSampleFaults } from '../lab/engine-simulator/src/zoo/sample-faults';
import { getStanding } from '../lab/engine-simulator/src/zoo/zoo-sets';
import { parseEvents, post, type Reply } from './system/gateway';
import { TestSystem } from './system/test-system';
import { changeBehaviours } from './system/zoo-chaos';

/** Factor of clients and deadlines, which `npm run test:faults` sets. */
const FACTOR = Number(process.env.TEST_RUNS_FACTOR ?? 1);
const CLIENTS = FACTOR === 1 ? 60 : 1_000;
/** A slow machine makes more tokens before an engine is killed, and the other engines prefill them all. */
const RESUME_DEADLINE_MS = 60_000 * FACTOR;
const ENGINES = 4;
/** Every tenth client has a stop text, which ends its response before {@link TOKENS}. */
const STOP_EVERY = 10;
const STOP_AFTER_TOKENS = 2_900;
const GATEWAYS = ['gateway-1', 'gateway-2'];
const TOKENS = 3_000;
/** The responses take some minutes until the engines are started again with the second speed. */
const SLOW = 0.1;
const FAST = 50;
/** Number of tries after which a client gives up. */
const MAX_TRIES = 100;

type Engine = Awaited<ReturnType<typeof startEngine>>;
type Generated = Pick<Reply['body'], 'text' | 'output_ids' | 'meta_info'>;

let system: TestSystem;
const engines: Engine[] = [];
/** Engines that are in the pool, by their index. */
const serving = Array.from({ length: ENGINES }, (_, index) => index);
/** Stop texts by the index of their client. */
const stops: string[] = [];
let starts = 0;
let version = 0;
/** Error of a client that has given up. */
let failure: unknown;

beforeAll(async () => {
  system = await TestSystem.start({ workers: 0, engines: 0 });
  for (const index of serving) await startAt(index, SLOW);
  await Promise.all(
    GATEWAYS.map((name) =>
      system.startApp('gateway', name, {
        API_KEYS: 'off',
        INCREMENTAL_STREAMS: 'true',
        // A busy machine may stand still for seconds.
        WORKER_TTL_MS: '6000',
      }),
    ),
  );
});
afterEach(() => system.expectNothingHeld());
afterAll(async () => {
  await system?.stop();
  await Promise.all(engines.map((engine) => engine.close()));
});

/** Starts an engine, at its port if it ran before, and registers it. */
async function startAt(index: number, speed: number): Promise<void> {
  const port = Number(new URL(engines[index]?.url ?? 'http://host:0').port);
  const lengths = { name: 'test', getLength: () => 8_000 };
  const engine = await startEngine('sglang', {
    speed,
    lengths,
    ports: [port],
    zoo: getStanding('sglang'),
    tickMs: 20,
    streamMs: 100,
  });
  engines[index] = engine;
  starts += 1;
  await system.call('server.register', {
    serverId: `engine-${index}`,
    endpoint: engine.url,
    dialect: 'sglang',
    instanceId: `start-${starts}`,
    maxInflight: 512,
    weightVersion: version,
    capabilities: { pauseModes: [...PAUSE_MODES] },
  });
}

/** Ends an engine with all its connections, and starts it again. */
async function killEngine(index: number, speed: number): Promise<void> {
  await engines[index]!.close();
  await startAt(index, speed);
}

async function changeWeights(mode: PauseMode): Promise<void> {
  version += 1;
  const sync = { syncId: `sync-${version}`, version, mode };
  await system.call('weights.begin', { ...sync, waitMs: 0 });
  const isQuiet = async () => (await system.call('weights.status', { cursor: '0' })).sync!.running;
  if (mode !== 'keep') await expect.poll(isQuiet, { timeout: RESUME_DEADLINE_MS }).toBe(0);
  for (const index of serving) {
    await system.call('server.update', { serverId: `engine-${index}`, weightVersion: version });
  }
  await system.call('weights.commit', { syncId: sync.syncId });
}

const buildBody = (index: number) => ({
  rid: `client-${index}`,
  input_ids: [1_000 + index, 7, 9],
  sampling_params: { max_new_tokens: TOKENS, temperature: 0, sampling_seed: index, stop: stops[index] },
  stream: index % 2 === 0,
});

/** Every tenth client records its turn. */
const buildHeaders = (index: number): Record<string, string> =>
  index % 10 === 0 ? { 'x-session-id': `session-${index}`, 'x-broomwagon-trajectory': 'record' } : {};

/** Sends the request of a client, and repeats it at the next replica as long as the error is retryable. */
async function fetchAnswer(index: number): Promise<Generated> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const url = `http://127.0.0.1:${system.port(GATEWAYS[(index + tries) % GATEWAYS.length]!)}`;
    const reply = await post(`${url}/generate`, buildBody(index), buildHeaders(index)).catch(() => undefined);
    const { answer, error } = reply === undefined ? {} : parseContents(reply);
    if (answer !== undefined) return answer;
    if (error !== undefined) expect(error, `the error of client ${index}`).toMatchObject({ retryable: true });
    await delay(200);
  }
  throw new Error(`Client ${index} has no answer after ${MAX_TRIES} tries`);
}

/** A whole answer, the increments of a stream as one answer, or the error. */
function parseContents({ status, body }: Reply): { answer?: Generated; error?: object } {
  if (status !== 200) return { error: body.error };
  if (typeof body !== 'string') return { answer: body };
  const events = parseEvents(body) as Reply['body'][];
  expect(events.pop(), 'the end of a stream').toBeNull();
  const error = events.at(-1)?.error;
  if (error !== undefined) return { error };
  return {
    answer: {
      text: events.map(({ text }) => text).join(''),
      output_ids: events.flatMap(({ output_ids: ids }) => ids),
      meta_info: events.at(-1)?.meta_info,
    },
  };
}

/** Responses that nothing cuts, without stop texts. */
async function uncutAnswers(): Promise<Generated[]> {
  const reference = await startEngine('sglang', { speed: 1_000, lengths: { name: 'test', getLength: () => 8_000 } });
  const answers: Generated[] = [];
  try {
    for (let index = 0; index < CLIENTS; index++) {
      answers.push((await post(`${reference.url}/generate`, { ...buildBody(index), stream: false })).body);
    }
  } finally {
    await reference.close();
  }
  return answers;
}

/** Waits until all requests of the clients have tokens of engines. */
async function areRunning(): Promise<void> {
  const running = async () => {
    if (failure !== undefined) throw failure;
    const states = await Promise.all(engines.map(({ url }) => fetchState(url)));
    return states.flatMap(({ table }) => table).filter(({ state, made }) => state === 'running' && made > 0).length;
  };
  await expect.poll(running, { timeout: RESUME_DEADLINE_MS }).toBe(CLIENTS);
}

const savedPartials = () => system.redis.savedPartials();

describe(`${CLIENTS} clients of two replicas of the gateway`, () => {
  it('get the tokens of an uncut response, whatever is killed, drained or changed, and however engines behave', async () => {
    const wholes = await uncutAnswers();
    for (let index = STOP_EVERY / 2; index < CLIENTS; index += STOP_EVERY) {
      const words = wholes[index]!.text.split(/(?= t)/);
      stops[index] = words.slice(STOP_AFTER_TOKENS, STOP_AFTER_TOKENS + 2).join('');
    }
    // An abort by an engine ends a response, and nobody aborts the request of a killed gateway by its id.
    const leftOut = ['sglang-waiting-abort', 'closes-unnoticed'];
    const urls = engines.map(({ url }) => url);
    const behaviours = changeBehaviours(urls, 'sglang', {
      seed: inject('seed'),
      leftOut,
      always: getStanding('sglang'),
    });
    onTestFinished(async () => void (await behaviours.stop()));
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, index) => fetchAnswer(index)));
    clients.catch((error: unknown) => (failure = error));
    await areRunning();
    for (const mode of ['keep', 'abort', 'keep', 'abort'] as const) {
      await changeWeights(mode);
      // After a change in place, a call that fails waits: no engine has emptied its prefix cache before it is idle.
      if (mode === 'abort') await areRunning();
    }
    for (const index of serving) {
      await killEngine(index, SLOW);
      await areRunning();
    }
    const replica = system.process('gateway-2');
    // The clients of this replica continue from its saved tokens.
    await expect.poll(savedPartials, { timeout: RESUME_DEADLINE_MS }).toBe(CLIENTS);
    replica.kill('SIGKILL');
    await replica.exited;
    await areRunning();
    expect(await system.metrics('gateway-1')).toMatch(/gateway_restored_tokens_total\S* [1-9]/);
    await replica.start();
    const drained = serving.splice(0, ENGINES / 2);
    for (const index of drained) await system.call('server.drain', { serverId: `engine-${index}`, deadlineMs: 100 });
    await areRunning();
    // From here on responses end by themselves.
    for (const index of serving) await killEngine(index, FAST);
    await changeWeights('wait');
    await changeWeights('wait');
    const answers = await clients;
    expect(await behaviours.stop()).toBeGreaterThan(10);

    for (const [index, { text, output_ids: tokenIds, meta_info: meta }] of answers.entries()) {
      const { text: wholeText, output_ids: wholeIds } = wholes[index]!;
      const found = { text, tokenIds, finishReason: meta.finish_reason.type };
      const truth = { text: wholeText, tokenIds: wholeIds, stop: stops[index], maxTokens: TOKENS };
      expect(findSampleFaults(found, truth), `client ${index}`).toEqual([]);
    }
    // A turn whose replica was killed is there once, with the tokens that its client has got.
    for (const [index, { output_ids: ids }] of answers.entries()) {
      if (index % 10 !== 0) continue;
      const url = `http://127.0.0.1:${system.port('gateway-1')}/sessions/session-${index}/trajectory`;
      const { branches, missing } = (await (await fetch(url)).json()) as Reply['body'];
      expect([missing, branches.length], `client ${index}`).toEqual([[], 1]);
      expect(branches[0].token_ids).toEqual([...buildBody(index).input_ids, ...ids]);
    }
    for (const { url } of engines) expect((await fetchState(url)).resumeMismatches).toBe(0);
    await system.expectNothingHeld();
    expect(await system.redis.findings()).toEqual([]);
    await expect.poll(savedPartials).toBe(0);
  });
});
