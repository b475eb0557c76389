import { beforeEach, describe, expect, it } from 'vitest';
import { inject, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { open } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

const TOKENS = 80;

const system = useGateway(60, { gateway: { rejoinMs: 120_000 } });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

const body = (maxNewTokens: number, more: object = {}) => ({
  input_ids: [11, 12, 13],
  sampling_params: { max_new_tokens: maxNewTokens },
  ...more,
});
const received = async () => (await fetchState(bench.engine.url)).requests.received;
/** Sends headers as UTF-8. */
async function statusWith(headers: Record<string, string>): Promise<number> {
  const encoded = Object.entries(headers).map(([name, value]): [string, string] => [
    name,
    Buffer.from(value, 'utf8').toString('latin1'),
  ]);
  const { status } = await fetch(`${gateway.url}/generate`, {
    method: 'POST',
    headers: encoded,
    body: JSON.stringify(body(1)),
  });
  return status;
}
async function sessions(): Promise<string[]> {
  const { sessions: rows } = await bench.client.call(bench.pool, 'lb.sessions', {});
  return rows.map(({ sessionId }) => sessionId).toSorted();
}

describe('a session', () => {
  it.each(['a', 'a/b', '../..', 'a~b', 'ü 🚀', 'x'.repeat(300)])(
    '%s is the same by path, key, header and field',
    async (id) => {
      const statuses = await Promise.all([
        statusWith({ authorization: `Bearer key.${id}` }),
        statusWith({ 'x-session-id': id }),
        statusWith({ 'x-smg-routing-key': id }),
        gateway.post(`/sessions/${encodeURIComponent(id)}/generate`, body(1)).then(({ status }) => status),
        gateway.post('/generate', body(1, { session_id: id })).then(({ status }) => status),
      ]);
      expect(statuses).toEqual([200, 200, 200, 200, 200]);
      expect(await sessions()).toEqual([id]);
    },
  );

  const refused: [string, string, object, Record<string, string>, string][] = [
    ['path and key', '/sessions/a/generate', {}, { authorization: 'Bearer key.b' }, 'session'],
    ['path and header', '/sessions/a/generate', {}, { 'x-session-id': 'b' }, 'x-session-id'],
    ['two headers', '/generate', {}, { 'x-session-id': 'a', 'x-smg-routing-key': 'b' }, 'x-smg-routing-key'],
    ['header and field', '/generate', { session_id: 'b' }, { 'x-session-id': 'a' }, 'session_id'],
    ['a field that is no text', '/generate', { session_id: 7 }, {}, 'session_id'],
    ['an id that is too long', `/sessions/${'x'.repeat(600)}/generate`, {}, {}, 'session'],
    ['a control character', '/sessions/a%00b/generate', {}, {}, 'session'],
  ];
  it.each(refused)('is refused: %s', async (_, path, more, headers, field) => {
    const { status, body: answer } = await gateway.post(path, body(1, more), headers);
    expect([status, answer.error.type, answer.error.param]).toEqual([400, 'VALIDATION_FAILED', field]);
    expect(await received()).toBe(0);
  });

  it('without a name has no path, and a name that is no UTF-8 is refused', async () => {
    expect((await gateway.post('/sessions//generate', body(1))).status).toBe(404);
    expect((await gateway.post('/sessions/%ff/generate', body(1))).status).toBe(400);
    expect(await sessions()).toEqual([]);
  });
});

it('a request whose id is in X-Request-Id, as of a proxy, ends with its client, and is aborted by that id', async () => {
  const headers = { 'x-request-id': 'r1' };
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const sent = open(`${gateway.url}/generate`, body(TOKENS), headers);
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(6);
  sent.destroy();
  await expect.poll(() => gateway.metric('gateway_generations_running')).toBe(0);
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const again = gateway.post('/generate', body(TOKENS), headers);
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(12);
  await gateway.post('/abort_request', { rid: 'r1' });
  expect((await again).body.meta_info).toMatchObject({ id: 'r1', completion_tokens: 6 });
  const long = await gateway.post('/generate', body(1), { 'x-request-id': 'x'.repeat(900) });
  expect([long.status, long.body.meta_info.id.length]).toEqual([200, 36]);
});

describe('a repeat after its client has disconnected joins the generation', () => {
  it.each<[string, Record<string, string>, object]>([
    ['id', {}, { rid: 'r1' }],
    ['idempotency-key', { 'idempotency-key': 'k1' }, {}],
    ['session', { 'x-session-id': 's1' }, {}],
  ])('by %s', async (identity, headers, more) => {
    // The engine falls silent, so that the generation runs until it is joined.
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
    const sent = open(`${gateway.url}/generate`, body(TOKENS, more), headers);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(6);
    sent.destroy();
    // The gateway may see the end of the first connection after the repeat has arrived.
    await expect.poll(() => gateway.metric('gateway_generations_unread')).toBe(1);
    const again = gateway.post('/generate', body(TOKENS, more), headers);
    await expect.poll(() => gateway.metric('gateway_joined_total')).toBe(1);
    expect((await gateway.get('/metrics')).body).toContain(`identity="${identity}"`);
    await gateway.post('/abort_request', { abort_all: true });
    expect((await again).body.meta_info.completion_tokens).toBe(6);
    expect(await received()).toBe(1);
  });
});

it('equal requests of a session at the same time are samples of their own, also repeats of one of them', async () => {
  for (let stalls = 0; stalls < 3; stalls += 1) await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const session = { 'x-session-id': 's1' };
  const first = gateway.post('/generate', body(TOKENS), session);
  await expect.poll(received).toBe(1);
  const second = gateway.post('/generate', body(TOKENS), session);
  await expect.poll(received).toBe(2);
  const repeat = gateway.post('/generate', body(TOKENS), { ...session, 'x-stainless-retry-count': '1' });
  await expect.poll(received).toBe(3);
  await gateway.post('/abort_request', { abort_all: true });
  const ids = (await Promise.all([first, second, repeat])).map((reply) => reply.body.meta_info.id);
  expect(new Set(ids).size).toBe(3);
});
