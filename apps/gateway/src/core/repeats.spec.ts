import { setTimeout as delay } from 'node:timers/promises';
import { PartialOwnerStore, PartialStore } from '@broomwagon/state';
import { expect, inject as provided, it, vi } from 'vitest';
import { inject, fetchState, selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { createRandom } from '../../../../test/system/chaos';
import { Gateway, open, post, type Reply } from '../../../../test/system/gateway';
import { expectSame, generate, LONG, useGateway } from '../../../../test/system/gateway-bench';

const PAIRS = 20 * provided('runsFactor');

const system = useGateway(8, { registered: 'none', gateway: { rejoinMs: 120_000 } });
const startOther = () => Gateway.start(system.bench.prefix, system.bench.pool, { rejoinMs: 120_000 });
const received = async () => (await fetchState(system.second.url)).requests.received;
const repeatsElsewhere = async (gateway: Gateway, labels: string): Promise<number> => {
  const { body } = await gateway.get('/metrics');
  return Number(new RegExp(`gateway_repeats_elsewhere_total{.*${labels}.*} (\\d+)$`, 'm').exec(body)?.[1] ?? 0);
};

it.each<[string, (index: number) => [object, Record<string, string>]]>([
  ['id', (index) => [{ rid: `r${index}` }, {}]],
  ['idempotency-key', (index) => [{}, { 'idempotency-key': `k${index}` }]],
])('a request sent to two replicas at once has one generation: %s', async (identity, identified) => {
  const other = await startOther();
  const random = createRandom(provided('seed'));
  const pairs = Array.from({ length: PAIRS }, async (_, index): Promise<Reply[]> => {
    const [more, headers] = identified(index);
    const replicas = [system.gateway, other];
    const [first, second] = random() < 0.5 ? replicas : replicas.toReversed();
    const pauseMs = random() * 300;
    const answered = first!.post('/generate', generate(20, more), headers);
    await delay(pauseMs);
    return Promise.all([answered, second!.post('/generate', generate(20, more), headers)]);
  });
  for (const gateway of [system.gateway, other]) {
    await expect.poll(() => gateway.metric('gateway_generations_running')).toBe(PAIRS);
  }
  // Without an engine no request could start before, so none can have ended before its repeat has arrived.
  await system.registerSecond();
  const replies = await Promise.all(pairs);
  expect(await received()).toBe(PAIRS);
  const whole = await system.uncut(20);
  for (const pair of replies) {
    const [answer, refusal] = pair.toSorted((a, b) => a.status - b.status);
    expectSame(answer!, whole);
    expect([refusal!.status, refusal!.body.error.type, refusal!.headers['retry-after']]).toEqual([
      409,
      'REQUEST_IN_PROGRESS',
      '1',
    ]);
    expect(refusal!.body.error.retryable).toBe(true);
  }
  const labels = `identity="${identity}",outcome="refused"`;
  const refused = (await repeatsElsewhere(system.gateway, labels)) + (await repeatsElsewhere(other, labels));
  expect(refused).toBe(PAIRS);
  // The id is free again.
  const [more, headers] = identified(0);
  for (const gateway of [system.gateway, other])
    expectSame(await gateway.post('/generate', generate(20, more), headers), whole);
  await other.close();
});

it('a request with several choices sent to two replicas at once has all choices in one', async () => {
  const other = await startOther();
  const random = createRandom(provided('seed'));
  const replicas = [system.gateway, other];
  // Claims reach Redis in any order, like claims of two hosts.
  const { claim } = PartialOwnerStore.prototype;
  const claims = vi.spyOn(PartialOwnerStore.prototype, 'claim').mockImplementation(async function (
    this: PartialOwnerStore,
    ...args: Parameters<typeof claim>
  ) {
    await delay(random() * 50);
    return claim.apply(this, args);
  });
  const buildBody = (index: number) => {
    const { sampling_params: sampling, ...body } = generate(20, { rid: `r${index}` });
    return { ...body, sampling_params: { ...sampling, n: 3 } };
  };
  const pairs = Array.from({ length: PAIRS }, async (_, index): Promise<Reply[]> => {
    const [first, second] = random() < 0.5 ? replicas : replicas.toReversed();
    return Promise.all([first, second].map((gateway) => gateway!.post('/generate', buildBody(index))));
  });
  for (const gateway of replicas) {
    await expect.poll(() => gateway.metric('gateway_generations_running')).toBe(3 * PAIRS);
  }
  await system.registerSecond();
  const replies = await Promise.all(pairs);
  expect(await received()).toBe(3 * PAIRS);
  claims.mockRestore();
  const whole = await post(`${system.second.url}/generate`, generate(20));
  for (const pair of replies) {
    const [answer, refusal] = pair.toSorted((a, b) => a.status - b.status);
    expect([answer!.status, refusal!.status, refusal!.body.error.type]).toEqual([200, 409, 'REQUEST_IN_PROGRESS']);
    expect(answer!.body.length).toBe(3);
    expect(answer!.body[0].output_ids).toEqual(whole.body.output_ids);
  }
  // The ids of all choices are free again.
  for (const gateway of replicas) expect((await gateway.post('/generate', buildBody(0))).body.length).toBe(3);
  await other.close();
});

it('a repeat at another replica takes over from a client that has gone, with the tokens so far', async () => {
  const other = await startOther();
  await system.bench.register({ dialect: 'sglang' });
  await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const body = generate(LONG, { rid: 'r' });
  const sent = open(`${system.gateway.url}/generate`, body);
  await expect.poll(() => system.metric('tokens_generated_total')).toBe(6);
  const wrong = await other.post('/generate', generate(LONG + 1, { rid: 'r' }));
  expect([wrong.status, wrong.body.error.type]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  const repeat = other.post('/generate', body);
  await expect.poll(() => other.metric('gateway_generations_running')).toBe(1);
  expect(await other.metric('gateway_restored_tokens_total')).toBe(0);
  sent.destroy();
  await expect.poll(() => other.metric('gateway_restored_tokens_total')).toBe(6);
  await expect.poll(() => system.metric('gateway_generations_running')).toBe(0);
  await expect.poll(async () => (await system.leases()).leases).toBe(1);
  expectSame(await repeat, await system.uncut(LONG));
  expect(await repeatsElsewhere(other, 'identity="id",outcome="taken"')).toBe(1);
  await other.close();
});

it('a replica that is shut down first saves the tokens of all responses together, also of young ones', async () => {
  const HOUR_MS = 3_600_000;
  const settings = { partialSaveIntervalMs: HOUR_MS, drainMs: HOUR_MS, rejoinMs: 0, streamInterval: 1 };
  const ending = await Gateway.start(system.bench.prefix, system.bench.pool, settings);
  await system.bench.register({ dialect: 'sglang' });
  const save = vi.spyOn(PartialStore.prototype, 'save');
  await selectZoo(system.bench.engine.url, { entries: [], standsAt: 6 });
  const sent = [0, 1, 2].map((index) => {
    const request = open(`${ending.url}/generate`, generate(LONG, { rid: `r${index}` }));
    return request.on('error', () => undefined);
  });
  await expect.poll(() => ending.metric('tokens_generated_total')).toBe(18);
  expect(save).not.toHaveBeenCalled();
  // The responses stand still, so that the drain lasts until their clients have gone.
  const closed = ending.close();
  await expect.poll(() => save.mock.calls.length).toBeGreaterThan(0);
  const saves = save.mock.calls[0]![1].map(({ partial }) => JSON.parse(partial) as { tokenIds: number[] });
  expect(saves.map(({ tokenIds }) => tokenIds.length)).toEqual([6, 6, 6]);
  save.mockRestore();
  for (const request of sent) request.destroy();
  await closed;
});

it.each([
  ['that is read', {}],
  ['that is passed on', { some_field: 1 }],
])('a repeat at another replica gets a response %s and has ended unread, without an engine', async (_, more) => {
  const other = await startOther();
  await system.bench.register({ dialect: 'sglang' });
  const requests = async () => (await fetchState(system.bench.engine.url)).requests.received;
  const body = generate(LONG, { rid: 'r', ...more });
  const sent = open(`${system.gateway.url}/generate`, body);
  await expect.poll(requests).toBe(1);
  sent.destroy();
  await expect.poll(() => system.metric('gateway_generations_unread')).toBe(1);
  await expect.poll(() => system.metric('gateway_generations_running')).toBe(0);
  const wrong = await other.post('/generate', generate(LONG + 1, { rid: 'r' }));
  expect([wrong.status, wrong.body.error.type]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  const reply = await other.post('/generate', body);
  expectSame(reply, await system.uncut(LONG));
  expect(reply.headers['x-broomwagon-server']).toBe('s1');
  expect(reply.headers['x-broomwagon-weight-versions']).toBe(`0:0-${LONG}`);
  expect(await requests()).toBe(1);
  // The id is free again, in both replicas.
  await expect.poll(() => system.metric('gateway_generations_unread')).toBe(0);
  for (const gateway of [other, system.gateway]) {
    expect((await gateway.post('/generate', generate(3, { rid: 'r' }))).body.output_ids).toHaveLength(3);
  }
  expect(await requests()).toBe(3);
  await other.close();
});

it('a repeat at another replica does not take the turn of a recorded session', async () => {
  const other = await startOther();
  const recorded = { 'x-session-id': 's', 'x-broomwagon-trajectory': 'record' };
  const body = generate(20, { rid: 'r' });
  const first = system.gateway.post('/generate', body, recorded);
  await expect.poll(() => system.metric('gateway_generations_running')).toBe(1);
  const repeat = other.post('/generate', body, recorded);
  await expect.poll(() => other.metric('gateway_generations_running')).toBe(1);
  await system.registerSecond();
  const replies = await Promise.all([first, repeat]);
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  const { body: trajectory } = await other.get('/sessions/s/trajectory');
  expect([trajectory.branches.length, trajectory.missing]).toEqual([1, []]);
  await other.close();
});
