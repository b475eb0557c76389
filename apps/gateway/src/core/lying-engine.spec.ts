import { createServer, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startEngine } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../../../../test/system/gateway';
import { ServiceBench } from '../../../../test/system/service-bench';

/** Answers that the engines give in place of the simulator behind them, by path. */
const lies = new Map<string, (response: ServerResponse) => void>();
/** Number of calls that got a false answer. Probes use another method for routes. */
let told = 0;
const engines: Awaited<ReturnType<typeof startEngine>>[] = [];
const servers: Server[] = [];
let bench: ServiceBench;
let gateway: Gateway;

/** An engine that lies, in front of a simulated one. */
async function startLiar(dialect: 'sglang' | 'vllm'): Promise<string> {
  const engine = await startEngine(dialect, { speed: 50, lengths: { name: 'test', getLength: () => 8 } });
  engines.push(engine);
  const server = createServer((incoming, response) => {
    const [path, query] = incoming.url!.split('?');
    // Whether the engine takes `stream_interval` is no lie.
    const lie = query === undefined ? lies.get(path!) : undefined;
    if (lie !== undefined) {
      if (incoming.method !== 'OPTIONS') told += 1;
      incoming.resume();
      return lie(response);
    }
    const { method, headers, url } = incoming;
    const onward = request(`${engine.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  bench = await ServiceBench.open({}, 1);
  await bench.begin(() => 8, 50, 'sglang');
  // All calls fail: without this, no failure would count against a request.
  await bench.client.call(bench.pool, 'pool.configure', { breakerFailures: 0 });
  for (const dialect of ['sglang', 'vllm'] as const) {
    await bench.register({
      serverId: dialect,
      instanceId: dialect,
      endpoint: await startLiar(dialect),
      dialect,
      model: dialect,
    });
  }
});
afterAll(async () => {
  await gateway?.close();
  for (const engine of [bench.engine, ...engines]) await engine?.close();
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await bench?.close();
});
beforeEach(async () => {
  lies.clear();
  told = 0;
  gateway ??= await Gateway.start(bench.prefix, bench.pool, { maxEngineFailures: 1, engineFailurePauseMs: 1 });
});

const leases = async () => (await bench.client.call(bench.pool, 'lb.status', {})).leases;

describe('an answer that does not fit the dialect of its engine', () => {
  it.each(['null', '[]', '7', '"a"', 'no JSON', '{"count":"5"}', '{"count":-1}'])(
    'to /tokenize is an error of the engine: %s',
    async (text) => {
      lies.set('/tokenize', (response) => response.end(text));
      const { status, body } = await gateway.post('/v1/messages/count_tokens', {
        model: 'vllm',
        messages: [{ role: 'user', content: 'a' }],
      });
      expect([status, body.error.code, told]).toEqual([502, 'ENGINE_PROTOCOL', 1]);
    },
  );

  it.each(['null', '[]', '7'])('to a request for the ranks is an error of the engine: %s', async (text) => {
    for (const path of ['/get_world_size', '/get_server_info']) lies.set(path, (response) => response.end(text));
    const group = { rank_offset: 1, world_size: 2 };
    for (const path of ['/init_weights_update_group', '/areal_init_weights_update_group']) {
      const before = told;
      const { status, body } = await gateway.post(path, group);
      expect([status, body.error.type]).toEqual([502, 'ENGINE_PROTOCOL']);
      expect(told).toBeGreaterThan(before);
    }
  });
});

const DONE = 'data: [DONE]\n\n';
/** A stream of SGLang with one chunk, and its end. */
const stream = (chunk: unknown, end: object = { type: 'stop' }): string =>
  [chunk, { text: '', output_ids: [], meta_info: { finish_reason: end } }]
    .map((one) => `data: ${JSON.stringify(one)}\n\n`)
    .join('') + DONE;
const meta = (fields: object) => ({ text: 'a', output_ids: [5], meta_info: { completion_tokens: 1, ...fields } });

describe('a malformed stream of an engine:', () => {
  // A generate request may go to any server, so the server without false answers is removed.
  beforeAll(() => bench.client.call(bench.pool, 'server.remove', { serverId: 'vllm' }));

  it.each<[string, string]>([
    ['null', stream(null)],
    ['a list', stream([])],
    ['a number', stream(7)],
    ['a text that is a number', stream({ text: 5, output_ids: [5], meta_info: {} })],
    ['ids that are an object', stream({ text: 'a', output_ids: {}, meta_info: {} })],
    ['ids that are no numbers', stream({ text: 'a', output_ids: ['x', null], meta_info: {} })],
    ['negative ids', stream({ text: 'a', output_ids: [-1, 1.5], meta_info: {} })],
    ['a description that is a text', stream({ text: 'a', output_ids: [5], meta_info: 'x' })],
    ['a negative count', stream(meta({ completion_tokens: -5 }))],
    ['a count that is a text', stream(meta({ completion_tokens: 'x' }))],
    ['a huge count', stream(meta({ completion_tokens: 1e15 }))],
    ['a negative prompt', stream(meta({ prompt_tokens: -7, cached_tokens: -3 }))],
    ['usage that is a text', stream(meta({ prompt_tokens: 'x', cached_tokens: {} }))],
    ['log probabilities that are none', stream(meta({ output_token_logprobs: [null] }))],
    ['log probabilities of texts', stream(meta({ output_token_logprobs: [['a', 'b', null]] }))],
    ['spans that are none', stream(meta({ weight_versions: [null] }))],
    ['spans of texts', stream(meta({ weight_versions: [{ version: {}, start: 'a', end: -1 }] }))],
    ['a weight version that is an object', stream(meta({ weight_version: { toString: null } }))],
    ['an end that is a number', stream(meta({}), { type: 7 })],
    ['an end with an object', stream(meta({}), { type: 'stop', matched: { a: 1 } })],
    ['an event of 20 MB', `data: "${'x'.repeat(20_000_000)}"\n\n${DONE}`],
    ['no stream', '{}'],
    ['nothing', ''],
  ])('%s is answered, and its lease is freed', async (_, text) => {
    lies.set('/generate', (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text));
    for (const streamed of [false, true]) {
      const { status, body } = await gateway.post(
        '/generate',
        {
          input_ids: [1, 2],
          sampling_params: { max_new_tokens: 4 },
          return_logprob: true,
          stream: streamed,
        },
        { 'x-broomwagon-min-weight-version': '0' },
      );
      const answer = typeof body === 'string' ? body : JSON.stringify(body);
      expect(answer).not.toContain('INTERNAL');
      expect(answer.length).toBeLessThan(20_000);
      expect([200, 502]).toContain(status);
    }
    expect(told).toBe(2);
    await expect.poll(leases).toBe(0);
  });
});
