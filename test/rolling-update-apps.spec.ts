import { setTimeout as delay } from 'node:timers/promises';
import { hashOfToken } from '@broomwagon/state';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { Deployment } from './system/deployment';
import { readEvents } from './system/event-reader';
import { parseEvents, post, type Reply } from './system/gateway';
import { TestSystem } from './system/test-system';

/** `npm run test:faults` builds the release before this one, and replaces as many pods as the chart has. */
const OLD_BUILD = process.env['OLD_BUILD'];
const NEW_BUILD = 'dist';
const REPLICAS = OLD_BUILD === undefined ? 1 : 2;
const APPS = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'] as const;
const PROMPTS = dataSet(8, 2);
/** One client for each length of response; more clients when there are two replicas. */
const CLIENTS = OLD_BUILD === undefined ? 2 : 6;
/** Longer than a response that ends in preStop. */
const MAX_PRE_STOP_MS = OLD_BUILD === undefined ? 2_000 : Infinity;
/** Speeds of the engines while pods are replaced, and at the end of the load. */
const SPEED = OLD_BUILD === undefined ? 40 : 20;
const LAST_SPEED = 200;
const CALLERS = 4;
/** Pause between the calls of a caller or an operator. A shorter one only takes more processor time. */
const PAUSE_MS = 50;
const TOKEN = 'token-of-the-tests';
const TIMEOUT_MS = 600_000;

const deployments = {} as Record<(typeof APPS)[number], Deployment>;
/** Counts of the work under load, and codes of the errors after which a client repeated a request. */
const done = { jobs: 0, acquires: 0, responses: 0, changes: 0 };
const repeats: string[] = [];
/** Codes of connections that failed. */
const broken: string[] = [];
/** Errors of an open connection whose pod ended before the answer. A Service causes any other failure. */
const CUT = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const stopping = new AbortController();
let system: TestSystem;

beforeAll(async () => {
  system = await TestSystem.start({
    balancers: 0,
    coordinators: 0,
    workers: 0,
    registersEngines: false,
    prompts: PROMPTS,
    speed: SPEED,
    getEnvironment: (app) => ({
      // A busy machine may stand still for seconds.
      WORKER_TTL_MS: '6000',
      ...(app === 'gateway' ? { API_KEYS: 'off' } : {}),
      ...(app === 'admin-api' ? { ADMIN_TOKEN_SHA256: hashOfToken(TOKEN), RATE_LIMIT_PER_TOKEN: '100000' } : {}),
    }),
  });
  for (const app of APPS) {
    deployments[app] = new Deployment(system, app, MAX_PRE_STOP_MS);
    await deployments[app].scale(REPLICAS, OLD_BUILD ?? NEW_BUILD);
    if (app === 'load-balancer') await system.registerEngines();
  }
}, TIMEOUT_MS);
afterAll(() => system?.stop());

async function train(): Promise<void> {
  while (!stopping.signal.aborted) {
    const job = `job-${done.jobs}`;
    const { lines } = await system.train(job, PROMPTS, { groupsPerStep: 2, policy: 'resume' });
    expect(findFaults(job, PROMPTS, lines)).toEqual([]);
    done.jobs += 1;
  }
}

/** Takes leases for a worker of its own, as a trainer that only routes. */
async function acquire(caller: number): Promise<void> {
  const workerId = `caller-${caller}`;
  const { workerEpoch } = await system.call('worker.register', { workerId, registrationId: 'once', ttlMs: TIMEOUT_MS });
  for (let number = 0; !stopping.signal.aborted; number += 1) {
    const ids = { acquireId: `${workerId}-${number}`, requestId: `direct/${caller}/${number}` };
    const { leaseId } = await system.call('lb.acquire', { ...ids, workerId, workerEpoch });
    await delay(PAUSE_MS);
    await system.call('lb.release', { leaseId, outcome: 'finished' });
    done.acquires += 1;
  }
}

/** Half of the responses end while an old pod still waits in preStop, the others are cut there and continued. */
const getTokenCount = (client: number) => (client % 2 === 0 ? 1_000 : 30_000);

/** Adds the code of a connection that failed to `broken`; throws other errors again. */
function noteFailure(error: NodeJS.ErrnoException): undefined {
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  broken.push(code);
}

/** Sends a request until it has an answer; each error must be retryable. */
async function repeated<Answer>(once: (attempt: number) => Promise<Answer | undefined>): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await once(attempt).catch(noteFailure);
    if (answer !== undefined) return answer;
    await delay(100);
  }
}

/** Adds the code of an error that may be repeated to `repeats`, and fails for others. */
function noteError(error: Reply['body'], about: string): undefined {
  expect(error, about).toMatchObject({ retryable: true });
  repeats.push(error.code);
}

/** Generates the same response again and again, as a stream, and compares its tokens. */
async function generate(client: number): Promise<void> {
  const max_tokens = getTokenCount(client);
  const sampling = { max_tokens, min_tokens: max_tokens, temperature: 0, seed: client, return_token_ids: true };
  const body = { model: 'simulated', prompt: [1_000 + client, 7, 9], stream: true, ...sampling };
  let first: number[] | undefined;
  for (let turn = 0; !stopping.signal.aborted; turn += 1) {
    const headers = { 'x-request-id': `client-${client}-${turn}` };
    const tokens = await repeated(async (attempt): Promise<number[] | undefined> => {
      const url = `${deployments.gateway.url((client >> 1) + attempt)}/v1/completions`;
      const reply = await post(url, body, headers);
      if (reply.status !== 200) return noteError(reply.body.error, `response of client ${client}`);
      const events = parseEvents(String(reply.body)) as Reply['body'][];
      const failed = events.find((event) => event?.error !== undefined);
      if (failed !== undefined) return noteError(failed.error, `stream of client ${client}`);
      expect(events.at(-1), 'the end of a stream').toBeNull();
      return events.slice(0, -1).flatMap(({ choices }) => choices.flatMap((choice: Reply['body']) => choice.token_ids));
    });
    first ??= tokens;
    expect(tokens.length).toBe(max_tokens);
    expect(tokens, `turn ${turn} of client ${client}`).toEqual(first);
    done.responses += 1;
  }
}

function administer(attempt: number, method: string, path: string, more: Record<string, string> = {}, body?: object) {
  const url = `${deployments['admin-api'].url(attempt)}/api/v1/pools/${system.pool}${path}`;
  const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json', ...more };
  return fetch(url, { method, headers, body: body && JSON.stringify(body) });
}

async function configure(): Promise<void> {
  for (let slowStartMs = 1; !stopping.signal.aborted; slowStartMs += 1) {
    await repeated(async (attempt): Promise<true | undefined> => {
      const key = { 'Idempotency-Key': `change-${slowStartMs}` };
      const response = await administer(attempt, 'PATCH', '/config', key, { slowStartMs });
      const reply = (await response.json()) as Reply['body'];
      return response.ok || noteError(reply, `change ${slowStartMs}`);
    });
    done.changes += 1;
    await delay(PAUSE_MS);
  }
}

/** Waits until each kind of load has made progress. */
async function moreOfAll(): Promise<void> {
  const before = { ...done };
  const still = () => Object.entries(done).filter(([kind, count]) => count <= before[kind as keyof typeof done]);
  await expect.poll(still, { timeout: TIMEOUT_MS / 4 }).toEqual([]);
}

async function readCommit(app: string, pod: string): Promise<string | undefined> {
  const page = await system.metrics(pod);
  return new RegExp(`^broomwagon_build_info\\{.*commit="([^"]*)".*app="${app}"`, 'm').exec(page)?.[1];
}

it(
  'each app is replaced pod by pod under load: no error that cannot be repeated, no lost group, exact counts',
  async () => {
    const sequences: number[] = [];
    const openEvents = async (headers: Record<string, string>) => {
      const response = await administer(0, 'GET', '/events', headers).catch(noteFailure);
      if (response === undefined) throw new Error('no connection');
      return response;
    };
    const load = Promise.all([
      train(),
      configure(),
      readEvents(openEvents, sequences, stopping.signal),
      ...Array.from({ length: CALLERS }, (_, caller) => acquire(caller)),
      ...Array.from({ length: CLIENTS }, (_, client) => generate(client)),
    ]);
    const update = async () => {
      await moreOfAll();
      for (const app of APPS) {
        const [old] = deployments[app].endpoints;
        const oldCommit = await readCommit(app, old!);
        await deployments[app].update(NEW_BUILD);
        expect(deployments[app].endpoints).toHaveLength(REPLICAS);
        const commits = await Promise.all(deployments[app].endpoints.map((pod) => readCommit(app, pod)));
        for (const commit of commits) expect(commit === oldCommit).toBe(OLD_BUILD === undefined);
        await moreOfAll();
      }
    };
    await Promise.race([update(), load]).finally(() => stopping.abort());
    await system.setSpeed(LAST_SPEED);
    await load;
    console.log(`under load: ${JSON.stringify(done)}, repeated: ${JSON.stringify([...repeats, ...broken])}`);

    // Clients are sent to pods that serve: none was refused a connection.
    expect(broken.filter((code) => !CUT.has(code))).toEqual([]);
    // One reader got each event once, in order.
    expect(sequences).toEqual(sequences.map((_, index) => index + 1));
    // Each change was made once.
    const { settings } = (await (await administer(0, 'GET', '/config')).json()) as Reply['body'];
    expect(settings.slowStartMs).toBe(done.changes);
    await system.expectAtRest();
    await expect.poll(() => system.redis.findings()).toEqual([]);
  },
  TIMEOUT_MS,
);
