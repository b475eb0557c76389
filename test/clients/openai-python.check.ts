import { execFile } from 'node:child_process';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inject } from '../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';

const python = process.env.CLIENTS_PYTHON;
const SCRIPT = resolve('test/clients/openai_client.py');

describe.skipIf(python === undefined)('the client of OpenAI for Python', () => {
  let bench: ServiceBench;
  let gateway: Gateway;

  beforeAll(async () => {
    bench = await ServiceBench.open({}, 60);
  });
  afterAll(() => bench?.close());
  beforeEach(async () => {
    await bench.begin(() => 8_000, 20, 'vllm');
    await bench.register({ model: 'simulated' });
    gateway = await Gateway.start(bench.prefix, bench.pool, { engineStallTimeoutMs: 3_000, rejoinMs: 120_000 });
  });
  afterEach(async () => {
    await gateway.close();
    await bench.engine.close();
    expect(await bench.findings()).toEqual([]);
  });

  /** What a call of the script prints. */
  async function run(call: string, url = gateway.url) {
    const { stdout } = await promisify(execFile)(python!, [SCRIPT, call, `${url}/v1`]);
    return JSON.parse(stdout);
  }

  it('reads completions with token ids and log probabilities, whole and streamed', async () => {
    const { whole, streamed } = await run('completions');
    expect(whole).toMatchObject({ finish_reason: 'length', logprobs: 6, usage: 6 });
    expect([whole.token_ids.length, streamed.text]).toEqual([6, whole.text]);
  });

  it('reads chats with log probabilities, whole and streamed', async () => {
    const { whole, streamed } = await run('chat');
    expect(whole).toMatchObject({ finish_reason: 'length', logprobs: 6 });
    expect(streamed.text).toBe(whole.text);
  });

  it('lists models, and gets errors as its own classes', async () => {
    expect(await run('errors')).toEqual({ models: ['simulated'], error: 'BadRequestError', param: 'n' });
  });

  it('repeats a request that was answered 503', async () => {
    let calls = 0;
    const proxy = createServer((incoming, outgoing) => {
      calls += 1;
      if (calls === 1) {
        incoming.resume();
        outgoing.writeHead(503, { 'retry-after-ms': '1' }).end('{}');
        return;
      }
      const { method, headers, url } = incoming;
      const sent = request(`${gateway.url}${url}`, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(sent);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { whole } = await run('completions', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    expect(whole.finish_reason).toBe('length');
    expect(calls).toBe(3);
    proxy.closeAllConnections();
    proxy.close();
  });

  it('repeats a request after its own timeout, and joins the generation that runs', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
    const { whole } = await run('timeout');
    expect(whole.token_ids).toHaveLength(6);
    expect(await gateway.metric('gateway_joined_total')).toBeGreaterThan(0);
  });
});
