import { connect, type Socket } from 'node:net';
import { EVENTS_STREAM, eventSubject } from '@broomwagon/contracts';
import { connectNats, ensureStream, type MessagingConnection } from '@broomwagon/messaging';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AdminApi } from './system/admin-api';

interface SentEvent {
  id: number;
  event: string;
  data: { sequence: number };
}

const { pool: prefix } = testPool();
const pool = `${prefix}-1`;
let api: AdminApi;
let connection: MessagingConnection;
let sequence = 0;

beforeAll(async () => {
  connection = await connectNats({ url: testNatsUrl() });
  const subjects = [eventSubject('*', '>')];
  await ensureStream(connection, { name: EVENTS_STREAM, subjects, maxBytes: 268_435_456, maxAgeMs: 86_400_000 });
  api = await AdminApi.start(prefix);
});
afterAll(async () => {
  await api?.close();
  await connection?.close();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

async function happen(type: string, fields: object = {}, of = pool): Promise<number> {
  sequence += 1;
  const body = JSON.stringify({ type, pool: of, atMs: 1, sequence, ...fields });
  await connection.nats.jetstream().publish(eventSubject(of, type), body);
  return sequence;
}

/** Reads a stream of events until `close`. */
async function listen(query = '', lastId?: number, token?: string) {
  const abort = new AbortController();
  const response = await fetch(`${api.url}/api/v1/pools/${pool}/events${query}`, {
    headers: {
      Authorization: `Bearer ${token ?? api.rootToken}`,
      ...(lastId === undefined ? {} : { 'Last-Event-ID': String(lastId) }),
    },
    signal: abort.signal,
  });
  expect(response.headers.get('Content-Type')).toContain('text/event-stream');
  const events: SentEvent[] = [];
  /** Ids that come without an event, and name the place at which the stream begins. */
  const places: string[] = [];
  const read = async () => {
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (text + chunk).split('\n\n');
      text = parts.pop()!;
      for (const part of parts.filter((one) => !one.startsWith(':'))) {
        const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/s, 2)));
        if (fields.data === undefined) places.push(fields.id!);
        else events.push({ id: Number(fields.id), event: fields.event!, data: JSON.parse(fields.data) });
      }
    }
  };
  void read().catch(() => undefined);
  return { events, places, sequences: () => events.map(({ data }) => data.sequence), close: () => abort.abort() };
}

it('sends the events of the pool, by type, job, round and server', async () => {
  const all = await listen();
  const types = await listen('?type=round.completed&type=server.fenced');
  const ofJob = await listen('?job=a%2Fb');
  const ofRound = await listen('?roundId=r1');
  const ofServer = await listen('?serverId=s1');
  const completed = await happen('round.completed', { job: 'a/b', roundId: 'r1' });
  const fenced = await happen('server.fenced', { serverId: 's1' });
  const finished = await happen('request.finished', { requestId: 'a~1b/g/0', roundId: 'r2' });
  await happen('round.completed', { job: 'a/b', roundId: 'r1' }, `${prefix}-2`);
  const last = await happen('request.aborted', { requestId: 'other/g/0' });
  await expect.poll(() => all.sequences()).toEqual([completed, fenced, finished, last]);
  await expect.poll(() => types.sequences()).toEqual([completed, fenced]);
  await expect.poll(() => ofJob.sequences()).toEqual([completed, finished]);
  await expect.poll(() => ofRound.sequences()).toEqual([completed]);
  await expect.poll(() => ofServer.sequences()).toEqual([fenced]);
  for (const reader of [all, types, ofJob, ofRound, ofServer]) reader.close();
});

it('replays the events after Last-Event-ID, and continues without a gap or a repeat', async () => {
  const first = await listen();
  const from = await happen('round.opened');
  await expect.poll(() => first.events.length).toBe(1);
  const { id } = first.events[0]!;
  first.close();
  const missed = [];
  for (let event = 0; event < 600; event++) missed.push(await happen('round.progressed'));
  // New events arrive while the reader gets the past ones.
  const coming = (async () => {
    for (let event = 0; event < 200; event++) missed.push(await happen('round.progressed'));
  })();
  const again = await listen('', id);
  await coming;
  await expect.poll(() => again.events.length).toBe(800);
  expect(again.sequences()).toEqual(missed);
  expect(again.sequences()).not.toContain(from);
  again.close();
});

it.each(['not json', 'null', '{}'])('leaves out the message %s, which is no event', async (text) => {
  const live = await listen();
  const from = await happen('round.opened');
  await expect.poll(() => live.sequences()).toEqual([from]);
  const { seq } = await connection.nats.jetstream().publish(eventSubject(pool, 'round.opened'), text);
  const next = await happen('round.opened');
  await expect.poll(() => live.sequences()).toEqual([from, next]);
  const replayed = await listen('', seq - 1);
  await expect.poll(() => replayed.sequences()).toEqual([next]);
  live.close();
  replayed.close();
});

it('names the place where a stream begins, so that a reader without an event can continue', async () => {
  const first = await listen('?type=server.paused');
  await expect.poll(() => first.places).toHaveLength(1);
  first.close();
  const missed = await happen('round.opened');
  const again = await listen('', Number(first.places[0]));
  await expect.poll(() => again.sequences()).toEqual([missed]);
  expect(again.places).toEqual([]);
  again.close();
});

it('cuts off a reader that does not read, while others are served', async () => {
  const { hostname, port } = new URL(api.url);
  const slow = await new Promise<Socket>((connected) => {
    const socket = connect(Number(port), hostname, () => connected(socket));
  });
  slow.pause();
  slow.write(`GET /api/v1/pools/${pool}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.rootToken}\r\n\r\n`);
  const open = async () => Number(/event_readers\{[^}]*\} (\d+)/.exec(await metrics())![1]);
  const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
  await expect.poll(open).toBe(1);
  const quick = await listen();
  const reason = 'x'.repeat(100_000);
  let last = 0;
  for (let event = 0; event < 150; event++) last = await happen('group.dropped', { reason });
  await expect.poll(() => quick.sequences().at(-1)).toBe(last);
  await expect.poll(metrics).toMatch(/event_readers_cut_total\{reason="unread",app="admin-api"\} 1/);
  expect(await open()).toBe(1);
  quick.close();
  slow.destroy();
  await expect.poll(open).toBe(0);
});

it('keeps no reader and no consumer of callers that go away', async () => {
  const first = await listen();
  await happen('round.opened');
  await expect.poll(() => first.events.length).toBe(1);
  for (let event = 0; event < 300; event++) await happen('round.progressed');
  first.close();
  const { hostname, port } = new URL(api.url);
  const head = `Host: x\r\nAuthorization: Bearer ${api.rootToken}\r\nLast-Event-ID: ${first.events[0]!.id}\r\n\r\n`;
  for (let caller = 0; caller < 20; caller++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    // Half of the callers disconnect before the stream begins, the others while stored events are read.
    socket.write(`GET /api/v1/pools/${pool}/events HTTP/1.1\r\n${head}`, () => {
      if (caller % 2 === 0) socket.destroy();
      else socket.once('data', () => socket.destroy());
    });
  }
  const open = async () => /event_readers\{[^}]*\} (\d+)/.exec(await (await fetch(`${api.url}/metrics`)).text())![1];
  await expect.poll(open).toBe('0');
  const manager = await connection.nats.jetstreamManager();
  const consumers = async () => {
    const all = await manager.consumers.list(EVENTS_STREAM).next();
    return all.filter(({ config }) => config.filter_subject === eventSubject(pool, '>')).length;
  };
  await expect.poll(consumers).toBe(0);
});

it('refuses a wrong id, a wrong filter and another pool before the stream begins', async () => {
  const path = `/pools/${pool}/events`;
  const wrong = await api.send('GET', path, undefined, { headers: { 'Last-Event-ID': 'x' } });
  expect(wrong.body).toMatchObject({ status: 400, field: 'Last-Event-ID' });
  expect((await api.send('GET', `${path}?colour=red`)).status).toBe(400);
  const token = await api.createToken('viewer', ['another']);
  expect((await api.send('GET', path, undefined, { token })).status).toBe(403);
});

it('lists stored events by type and time, page after page, in the order of the stream', async () => {
  const sent: number[] = [];
  const since = Date.now();
  for (let index = 0; index < 1_100; index++) {
    sent.push(await happen(index % 2 === 0 ? 'server.fenced' : 'server.hung', { serverId: 'stored', atMs: since }));
  }
  await happen('server.paused', { serverId: 'stored', atMs: since });
  await happen('server.hung', { serverId: 'stored', atMs: 1 });
  const found: number[] = [];
  const types = 'type=server.fenced&type=server.hung&serverId=stored';
  let cursor: number | undefined;
  let pages = 0;
  do {
    const after = cursor === undefined ? '' : `&cursor=${cursor}`;
    const { status, body } = await api.send(
      'GET',
      `/pools/${pool}/events/stored?${types}&sinceMs=${since - 60_000}${after}`,
    );
    expect(status).toBe(200);
    found.push(...body.events.map(({ event }: { event: SentEvent['data'] }) => event.sequence));
    ({ cursor } = body);
    pages += 1;
  } while (cursor !== undefined);
  expect(found).toEqual(sent);
  expect(pages).toBe(3);
});

it('lists rounds of a job from their events, latest first', async () => {
  const job = 'past/job';
  await happen('round.opened', { job, roundId: 'r1', step: 1, kind: 'main', neededGroups: 4, atMs: 10 });
  await happen('round.completed', { job, roundId: 'r1', step: 1, acceptedGroups: 4, atMs: 30 });
  await happen('round.closed', { job, roundId: 'r1', step: 1, atMs: 40 });
  await happen('round.opened', { job, roundId: 'r2', step: 2, kind: 'main', neededGroups: 4, atMs: 50 });
  await happen('round.opened', { job: 'other', roundId: 'r3', step: 1, kind: 'main', neededGroups: 4, atMs: 60 });
  const { body } = await api.send('GET', `/pools/${pool}/jobs/${encodeURIComponent(job)}/past-rounds`);
  expect(body.rounds).toEqual([
    { roundId: 'r2', step: 2, state: 'open', kind: 'main', neededGroups: 4, openedAtMs: 50 },
    {
      roundId: 'r1',
      step: 1,
      state: 'closed',
      kind: 'main',
      neededGroups: 4,
      openedAtMs: 10,
      acceptedGroups: 4,
      completedAtMs: 30,
    },
  ]);
});
