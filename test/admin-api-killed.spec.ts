import { setTimeout as delay } from 'node:timers/promises';
import { hashOfToken } from '@broomwagon/state';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { readEvents } from './system/event-reader';
import { TestSystem } from './system/test-system';

const TOKEN = 'token-of-the-tests';
const NAME = 'admin-api-1';
const PROMPTS = dataSet(28, 4);
const WRITERS = 4;
const READERS = 8;
/** Pause between two changes of a writer, and before a call is repeated, milliseconds. */
const PAUSE_MS = 20;

interface Change {
  slowStartMs: number;
  /** Reply of the change. Absent: a replica was killed while it processed the request, and the outcome is unknown. */
  reply?: object;
}

let system: TestSystem;
beforeAll(async () => {
  system = await TestSystem.start({ prompts: PROMPTS, speed: 80 });
  await system.startApp('admin-api', NAME, {
    ADMIN_TOKEN_SHA256: hashOfToken(TOKEN),
    RATE_LIMIT_PER_TOKEN: '100000',
    RATE_LIMIT_PER_ADDRESS: '100000',
  });
});
afterAll(() => system?.stop());

/** A request to the replica that runs now. @throws TypeError without a reply */
function send(method: string, path: string, headers: Record<string, string> = {}, body?: object): Promise<Response> {
  const url = `http://127.0.0.1:${system.port(NAME)}/api/v1/pools/${system.pool}${path}`;
  const all = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json', ...headers };
  return fetch(url, { method, headers: all, body: body && JSON.stringify(body) });
}

const openEvents = (headers: Record<string, string>) => send('GET', '/events', headers);

function configure({ slowStartMs }: Change): Promise<Response> {
  return send('PATCH', '/config', { 'Idempotency-Key': `change-${slowStartMs}` }, { slowStartMs });
}

/** Repeats a change until it has a reply, or its key is taken by a replica that was killed. */
async function makeChange(slowStartMs: number): Promise<Change> {
  const change: Change = { slowStartMs };
  for (;;) {
    const response = await configure(change).catch(() => undefined);
    const reply = (await response?.json().catch(() => undefined)) as { code?: string } | undefined;
    if (response?.status === 200 && reply !== undefined) return { slowStartMs, reply };
    if (['REQUEST_IN_PROGRESS', 'OUTCOME_UNKNOWN'].includes(reply?.code ?? '')) return change;
    await delay(PAUSE_MS);
  }
}

it('harms nothing when it is killed: a rollout, changes with keys, and readers of events continue', async () => {
  const versionNow = async () => ((await (await send('GET', '/config')).json()) as { version: number }).version;
  const initialVersion = await versionNow();
  const changes: Change[] = [];
  const stopping = new AbortController();
  const writer = async (first: number) => {
    for (let number = first; !stopping.signal.aborted; number += WRITERS) {
      changes.push(await makeChange(number));
      await delay(PAUSE_MS);
    }
  };
  const read = Array.from({ length: READERS }, (): number[] => []);
  const work = Promise.all([
    ...Array.from({ length: WRITERS }, (_, index) => writer(index + 1)),
    ...read.map((sequences) => readEvents(openEvents, sequences, stopping.signal)),
  ]);
  await expect.poll(() => changes.length).toBeGreaterThan(WRITERS);

  const victim = system.process(NAME);
  const rounds = new Set<string>();
  let restart = Promise.resolve();
  let isUp = true;
  let kills = 0;
  const trained = await system.train('job', PROMPTS, {
    groupsPerStep: 8,
    policy: 'resume',
    onStatus: ({ roundId }) => {
      if (rounds.has(roundId)) return;
      rounds.add(roundId);
      if (!isUp) return;
      isUp = !victim.kill('SIGKILL');
      kills += 1;
      restart = victim.exited.then(() => victim.start()).then(() => void (isUp = true));
    },
  });
  expect(kills).toBeGreaterThan(0);
  expect(findFaults('job', PROMPTS, trained.lines)).toEqual([]);
  await system.expectAtRest();

  await restart;
  const before = changes.length;
  await expect.poll(() => changes.length).toBeGreaterThan(before + WRITERS);
  const lastSequence = Math.max(...read.flatMap((sequences) => sequences.slice(-1)));
  await expect.poll(() => read.filter((sequences) => (sequences.at(-1) ?? 0) < lastSequence)).toEqual([]);
  stopping.abort();
  await work;

  // Each reader got each event once, in order.
  expect(lastSequence).toBeGreaterThan(10);
  for (const sequences of read) expect(sequences).toEqual(sequences.map((_, index) => 1 + index));
  // Each change with a reply was made once, and a repeat gets this reply.
  const answered = changes.filter(({ reply }) => reply !== undefined);
  const made = (await versionNow()) - initialVersion;
  expect(made).toBeGreaterThanOrEqual(answered.length);
  expect(made).toBeLessThanOrEqual(changes.length);
  const { versions } = (await (await send('GET', '/config/history')).json()) as {
    versions: { settings: { slowStartMs?: number } }[];
  };
  const values = versions.map(({ settings }) => settings.slowStartMs);
  expect(new Set(values).size).toBe(values.length);
  for (const change of answered) {
    const again = await configure(change);
    expect(again.headers.get('Idempotency-Replayed')).toBe('true');
    expect(await again.json()).toEqual(change.reply);
  }
  // A change without a reply may have been made, and is then not made again. If it was only started, a repeat makes it.
  let late = 0;
  for (const change of changes.filter(({ reply }) => reply === undefined)) {
    let code: string | undefined;
    const repeat = async () => ({ code } = (await (await configure(change)).json()) as { code?: string }).code;
    await expect.poll(repeat).not.toBe('REQUEST_IN_PROGRESS');
    if (code === undefined) late += 1;
    else expect(code).toBe('OUTCOME_UNKNOWN');
  }
  expect(made + late).toBeLessThanOrEqual(changes.length);
  expect(await versionNow()).toBe(initialVersion + made + late);
});
