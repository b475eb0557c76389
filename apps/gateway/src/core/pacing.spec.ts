import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { inject, selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, Gateway, open, type Reply } from '../../../../test/system/gateway';
import { expectSame, generate, LONG, useGateway } from '../../../../test/system/gateway-bench';

const RESPONSES = 10;
const LIMIT = 3;
const system = useGateway(8);
/** Requests that wait before the second engine. */
const held: (() => void)[] = [];
let gate: Server | undefined;
afterEach(() => {
  gate?.close().closeAllConnections();
  held.length = 0;
});

/** The address of the second engine, before which each `/generate` waits until it is let in. */
async function gatedEngine(): Promise<string> {
  gate = createServer((incoming, response) => {
    const { method, headers, url } = incoming;
    const letIn = (): void => {
      const onward = request(`${system.second.url}${url}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      incoming.pipe(onward);
    };
    if (url === '/generate') held.push(letIn);
    else letIn();
  });
  await new Promise<void>((resolve) => gate!.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(gate.address() as AddressInfo).port}`;
}

it('continues a bounded number of responses of a lost engine at a time, until they have their first tokens', async () => {
  const other = await Gateway.start(system.bench.prefix, system.bench.pool, { maxStartingResumes: LIMIT });
  await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 6, count: RESPONSES });
  const replies = Promise.all(Array.from({ length: RESPONSES }, () => other.post('/generate', generate(LONG))));
  await expect.poll(() => other.metric('tokens_generated_total')).toBe(6 * RESPONSES);
  await system.registerSecond({ endpoint: await gatedEngine() });
  await system.bench.engine.close();
  await system.bench.client.call(system.bench.pool, 'server.remove', { serverId: 's1' });
  await expect.poll(() => held.length).toBe(LIMIT);
  await expect.poll(() => other.metric('gateway_resumes_waiting')).toBe(RESPONSES - LIMIT);
  // The limit does not hold the first calls of new requests.
  const first = other.post('/generate', generate(3));
  await expect.poll(() => held.length).toBe(LIMIT + 1);
  held.pop()!();
  expect((await first).status).toBe(200);
  for (let left = RESPONSES; left > 0; left--) {
    await expect.poll(() => held.length).toBe(Math.min(LIMIT, left));
    expect(await other.metric('gateway_resumes_waiting')).toBe(Math.max(0, left - LIMIT));
    held.shift()!();
  }
  const whole = await system.uncut(LONG);
  for (const reply of await replies) expectSame(reply, whole);
  await other.close();
});

it('frees a response that waits for its turn when its client disconnects', async () => {
  const other = await Gateway.start(system.bench.prefix, system.bench.pool, { maxStartingResumes: 1 });
  await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 6, count: 2 });
  const sent = Array.from({ length: 2 }, () => open(`${other.url}/generate`, generate(LONG)));
  await expect.poll(() => other.metric('tokens_generated_total')).toBe(12);
  await system.registerSecond({ endpoint: await gatedEngine() });
  await system.bench.engine.close();
  await system.bench.client.call(system.bench.pool, 'server.remove', { serverId: 's1' });
  await expect.poll(() => other.metric('gateway_resumes_waiting')).toBe(1);
  for (const one of sent) one.destroy();
  await expect.poll(() => other.metric('gateway_resumes_waiting')).toBe(0);
  await expect.poll(() => other.metric('gateway_generations_running')).toBe(0);
  await expect.poll(() => system.leases()).toEqual({ leases: 0, waiters: 0 });
  await other.close();
});

describe('a response that engines abort, and whose client asks to continue', () => {
  const headers = { 'x-broomwagon-on-engine-abort': 'resume' };
  const limits = { maxEngineFailures: 2, engineFailureDeadlineMs: 0 };

  it.each([0, 1, 5])('continues after an abort of a waiting request with %d tokens', async (at) => {
    const { url } = system.bench.engine;
    await selectZoo(url, { entries: ['sglang-waiting-abort'], at, count: 1 });
    expectSame(await system.gateway.post('/generate', generate(30), headers), await system.uncut(30));
  });

  it('ends with an error when no token is kept, and counts how often it began', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool, limits);
    // A constrained response begins again without its tokens.
    await inject(system.bench.engine.url, { kind: 'done-mid-stream', afterTokens: 3, count: 9 });
    const sampling_params = { max_new_tokens: 30, regex: 'a*' };
    const { status, body, headers: sent } = await other.post('/generate', generate(30, { sampling_params }), headers);
    expect([status, body.error.type, body.error.retryable]).toEqual([502, 'ENGINE_ERROR', true]);
    expect(sent['x-broomwagon-attempts']).toBe('2');
    expect(await other.metric('gateway_begun_again_total')).toBe(2);
    await other.close();
  });
});

it('sends the tokens of a stream together once it is old enough', async () => {
  const other = await Gateway.start(system.bench.prefix, system.bench.pool, { streamBurstsAfterMs: 1 });
  const tokens = LONG / 2;
  const { body } = await other.post('/generate', generate(tokens, { stream: true }));
  const events = parseEvents(body).filter((event) => event !== null) as Reply['body'][];
  expect(events.length).toBeLessThan(tokens / 2);
  expect(events.at(-1).output_ids).toEqual((await system.uncut(tokens)).body.output_ids);
  await other.close();
});

it('takes a server out of use after several answers in a row that are [DONE] alone, however fast they come', async () => {
  await system.registerSecond();
  await inject(system.bench.engine.url, { kind: 'done-mid-stream', afterTokens: 0, count: 99 });
  const stateOfFirst = async () =>
    (await system.bench.client.call(system.bench.pool, 'server.list', {})).servers.find(
      ({ serverId }) => serverId === 's1',
    )?.state;
  for (let calls = 0; calls < 30 && (await stateOfFirst()) !== 'suspect'; calls++) {
    expect((await system.gateway.post('/generate', generate(3))).status).toBe(200);
    await expect.poll(() => system.leases()).toEqual({ leases: 0, waiters: 0 });
  }
  expect(await stateOfFirst()).toBe('suspect');
  expect(await system.gateway.metric('gateway_continued_total')).toBe(5);
});
