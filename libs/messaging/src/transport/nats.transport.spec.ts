import { headers as makeHeaders, type Msg } from 'nats';
import type { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { BroomwagonError, type WireError } from '@broomwagon/contracts';
import { requestRaw, testNatsUrl } from '@broomwagon/testing';
import { ERROR_CODE_HEADER, ERROR_HEADER } from '../wire';
import { echoController, startEchoApp, type EchoApp } from './echo-app.fixture';
import type { MessageOutcome } from './message-metrics';

const counts = new Map<string, number>();
const metrics = {
  handled: (pattern: string, outcome: MessageOutcome) => {
    const key = `${pattern.split('.').at(-1)} ${outcome}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  },
  inFlight: () => undefined,
};

describe('NatsTransport', () => {
  const name = 'transport-spec';
  const controller = echoController(name);
  const subject = (operation: string): string => `rollout.v1.pool-a.${name}.${operation}`;
  let app: EchoApp;

  beforeAll(async () => {
    app = await startEchoApp(testNatsUrl(), controller, { maxInFlight: 4, maxWaitingEvents: 8, metrics });
  });
  afterAll(() => app.close());

  /** Sends a message as any NATS client would: raw bytes in, the message out. */
  const raw = (operation: string, body: string | Uint8Array): Promise<Msg> =>
    requestRaw(app.client.connection.nats, subject(operation), body);
  const parseError = (message: Msg): WireError => message.json<{ error: WireError }>().error;

  it('speaks plain JSON and gives the handler a checked DTO and the pool', async () => {
    const reply = await raw('echo', '{"value": 3}');
    expect(reply.json()).toEqual({ value: 3, pool: 'pool-a' });
    expect(reply.headers?.get(ERROR_HEADER) ?? '').toBe('');
  });

  it.each([
    ['no JSON', 'this is not json'],
    ['an array', '[1]'],
    ['a number', '7'],
    ['null', 'null'],
    ['bytes that are no text', new Uint8Array([0xff, 0xfe, 0x00, 0x80])],
    ['half a body', '{"value":'],
    ['a number that no computer has', '{"value": -1.5E+400}'],
    ['a number that no computer has, in another form', `{"value":1${'0'.repeat(250)}e99 }`],
  ])('answers MALFORMED_JSON to %s and lives on', async (_, body) => {
    const reply = await raw('echo', body);
    expect(parseError(reply)).toMatchObject({ code: 'MALFORMED_JSON', retryable: false });
    expect(reply.headers?.get(ERROR_CODE_HEADER)).toBe('MALFORMED_JSON');
    await expect(app.client.request(subject('echo'), { value: 1 })).resolves.toMatchObject({ value: 1 });
  });

  it('survives malformed events too', async () => {
    app.client.connection.nats.publish(subject('event'), '{{{');
    app.client.connection.nats.publish(subject('event'), '');
    await expect.poll(() => counts.get('event MALFORMED_JSON')).toBeGreaterThan(0);
    await expect.poll(() => counts.get('event VALIDATION_FAILED')).toBeGreaterThan(0);
    await expect(app.client.request(subject('echo'), { value: 1 })).resolves.toMatchObject({ value: 1 });
  });

  it('names the wrong field', async () => {
    const reply = await raw('echo', '{"value": 101, "other": 1}');
    expect(parseError(reply)).toMatchObject({ code: 'VALIDATION_FAILED', field: 'other' });
    expect(parseError(reply).details).toContainEqual({
      field: 'value',
      reason: expect.stringContaining('100') as string,
    });
    expect(reply.headers?.get(ERROR_HEADER)).toContain('other');
  });

  it('refuses a body over the limit', async () => {
    const reply = await raw('echo', JSON.stringify({ value: 1, padding: 'x'.repeat(1_000_100) }));
    expect(parseError(reply)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', details: { limitBytes: 1_000_000 } });
  });

  it.each([
    ['ours', { code: 'FENCED', message: 'an old epoch', retryable: false, details: { epoch: 'e2' } }],
    ['retryable', { code: 'QUEUE_FULL', message: 'full', retryable: true, retryAfterMs: 7 }],
  ])('passes on an error with a code: %s', async (how, expected) => {
    expect(parseError(await raw('fail', JSON.stringify({ how })))).toEqual(expected);
  });

  it.each(['defect', 'rpc-text', 'internal', 'circular'])(
    'hides a defect (%s) behind a reference id, which is in one line of the log',
    async (how) => {
      const logged = vi.spyOn((app.transport as unknown as { logger: Logger }).logger, 'error');
      const error = parseError(await raw('fail', JSON.stringify({ how })));
      expect(error).toMatchObject({ code: 'INTERNAL', details: { referenceId: expect.any(String) as string } });
      expect(JSON.stringify(error)).not.toContain('secret');
      const { referenceId } = error.details as { referenceId: string };
      expect(logged.mock.calls.filter((line) => JSON.stringify(line).includes(referenceId))).toHaveLength(1);
      logged.mockRestore();
    },
  );

  it('takes null for a field that is not given, and replaces half a surrogate pair', async () => {
    const reply = await raw('echo', '{"value": 3, "waitMs": null, "text": "\\ud83d\\ude00 \\uD83D \\\\ud83d \\udc00"}');
    expect(reply.json()).toEqual({ value: 3, text: '😀 \ufffd \\ud83d \ufffd', pool: 'pool-a' });
  });

  it('answers with an error when the reply itself is too large for the server', async () => {
    expect(parseError(await raw('fail', '{"how":"large"}')).code).toBe('PAYLOAD_TOO_LARGE');
  });

  it('sends no reply to a parked call and frees its slot; the process that grants it replies', async () => {
    controller.seen.length = 0;
    const parked: Promise<unknown>[] = [];
    for (let count = 1; count <= 6; count++) {
      // More than maxInFlight.
      parked.push(app.client.request(subject('park'), {}));
      await expect.poll(() => controller.seen.length).toBe(count);
    }
    expect(app.transport.inHand()).toBe(0);
    const inboxes = controller.seen.map((context) => context.replyTo as string);
    app.client.reply(inboxes[0] as string, new BroomwagonError('WAIT_TIMEOUT', 'nothing'));
    inboxes.slice(1).forEach((inbox, index) => app.client.reply(inbox, { granted: index }));
    await expect(parked[0]).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' });
    expect(await Promise.all(parked.slice(1))).toEqual([0, 1, 2, 3, 4].map((granted) => ({ granted })));
  });

  it('answers OVERLOADED at once above the cap, and serves again when there is room', async () => {
    controller.gate.close();
    const held = Array.from({ length: 4 }, () => app.client.request(subject('hold'), {}));
    await expect.poll(() => controller.gate.waiting).toBe(4);
    const refused = app.client.request(subject('echo'), { value: 1 });
    await expect(refused).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true, retryAfterMs: 50 });
    controller.gate.lift();
    await Promise.all(held);
    await expect(app.client.request(subject('echo'), { value: 1 })).resolves.toMatchObject({ value: 1 });
  });

  it('keeps a bounded number of events until there is room, and counts further ones', async () => {
    controller.events.length = 0;
    controller.gate.close();
    for (let value = 1; value <= 15; value++) {
      app.client.publish(subject('event'), { value });
    }
    await expect.poll(() => counts.get('event OVERLOADED')).toBe(3);
    expect(app.transport.inHand()).toBe(12);
    controller.gate.lift();
    await expect.poll(() => controller.events.length).toBe(12);
    expect(controller.events).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it('refuses a message that was read after the deadline of its caller, as this process stood still', async () => {
    // Nothing checks the time before the message is read.
    vi.useFakeTimers({ toFake: ['setInterval'] });
    const other = echoController(`${name}-still`);
    const still = await startEchoApp(testNatsUrl(), other, { metrics });
    const ask = (timeoutMs: number): Promise<Msg> => {
      const headers = makeHeaders();
      headers.set('Broomwagon-Timeout-Ms', String(timeoutMs));
      const target = `rollout.v1.pool-a.${name}-still.echo`;
      return requestRaw(still.client.connection.nats, target, '{"value":1}', { headers });
    };
    const beforeStallMs = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => beforeStallMs + 7_000);
    try {
      expect(parseError(await ask(6_000))).toMatchObject({ code: 'TIMEOUT' });
      expect(other.seen).toEqual([]);
      expect((await ask(60_000)).json()).toMatchObject({ value: 1 });
    } finally {
      clock.mockRestore();
      vi.useRealTimers();
      await still.close();
    }
  });

  it('ignores a body in the headers of a hostile client', async () => {
    const headers = makeHeaders();
    headers.set('traceparent', 'garbage');
    headers.set('Broomwagon-Timeout-Ms', 'NaN');
    const nats = app.client.connection.nats;
    const reply = await requestRaw(nats, subject('echo'), '{"value":1}', { headers });
    expect(reply.json()).toMatchObject({ value: 1 });
  });

  it('publishes nothing to a subject that is no inbox, neither at once nor for a parked call', async () => {
    const heard: string[] = [];
    const { nats } = app.client.connection;
    const victim = `rollout.v1.pool-a.worker.w1.abort`;
    const listener = nats.subscribe(victim, { callback: (_, message) => void heard.push(message.string()) });
    await nats.flush();
    controller.seen.length = 0;
    for (const reply of [victim, '_INBOXES.x', '_INBOX']) {
      nats.publish(subject('echo'), '{"value": 1}', { reply });
      nats.publish(subject('echo'), '{"wrong": 1}', { reply });
    }
    await expect.poll(() => controller.seen.length).toBe(3);
    expect(controller.seen.map(({ replyTo }) => replyTo)).toEqual([undefined, undefined, undefined]);
    app.client.reply(victim, { granted: 1 });
    app.client.reply('_INBOX.a b', { granted: 1 });
    await app.client.flush();
    await app.client.request(subject('echo'), { value: 1 });
    expect(heard).toEqual([]);
    listener.unsubscribe();
  });

  it('counts every outcome under the declared subject', () => {
    expect(counts.get('echo OK')).toBeGreaterThan(0);
    expect(counts.get('park PARKED')).toBe(6);
    expect(counts.get('echo OVERLOADED')).toBe(1);
    expect(counts.get('fail INTERNAL')).toBe(4);
  });
});

describe('pools, replicas and broadcast', () => {
  it('serves only the named pools, shares requests among replicas, and broadcasts to all', async () => {
    const name = 'replica-spec';
    const apps = await Promise.all([
      startEchoApp(testNatsUrl(), echoController(name), { pools: ['a', 'b'] }),
      startEchoApp(testNatsUrl(), echoController(name), { pools: ['a', 'b'] }),
    ]);
    const { client } = apps[0];
    expect(await client.request(`rollout.v1.b.${name}.echo`, { value: 1 })).toMatchObject({ pool: 'b' });
    await expect(client.request(`rollout.v1.c.${name}.echo`, { value: 1 })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    });
    let replies = 0;
    const inbox = client.subscribe('_INBOX.replica-spec', () => void replies++);
    client.connection.nats.publish(`rollout.v1.a.${name}.broadcast`, '{}', { reply: '_INBOX.replica-spec' });
    await expect.poll(() => replies).toBe(2);
    inbox.unsubscribe();
    await Promise.all(apps.map((app) => app.close()));
  });

  it('refuses two handlers for one subject', async () => {
    const app = await startEchoApp(testNatsUrl(), echoController('duplicate-spec'));
    expect(() => app.transport.addHandler(`rollout.v1.*.duplicate-spec.echo`, () => undefined as never)).toThrow(
      /Two handlers/,
    );
    await app.close();
  });
});
