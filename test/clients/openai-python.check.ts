import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inject } from '../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';
import { printedBy, python, startScript } from './python';
import { readmeSetting } from './readme';

describe.skipIf(python === undefined)('the client for Python', () => {
  let bench: ServiceBench;
  let gateway: Gateway;

  beforeAll(async () => {
    bench = await ServiceBench.open({}, 60);
  });
  afterAll(() => bench?.close());
  beforeEach(async () => {
    await bench.begin(() => 400, 20, 'vllm');
    await bench.register({ model: 'simulated' });
    gateway = await Gateway.start(bench.prefix, bench.pool, { engineStallTimeoutMs: 3_000, rejoinMs: 120_000 });
  });
  afterEach(async () => {
    await gateway.close();
    await bench.engine.close();
    expect(await bench.findings()).toEqual([]);
  });

  /** Runs a call of the script, and returns the JSON that the script prints. */
  async function run(call: string, url = gateway.url) {
    return printedBy(await startScript('openai_client.py', [call, `${url}/v1`]));
  }

  it('of OpenAI reads completions with token ids and log probabilities, whole and streamed', async () => {
    const { whole, streamed } = await run('completions');
    expect(whole).toMatchObject({ finish_reason: 'length', logprobs: 6, usage: 6 });
    expect([whole.token_ids.length, streamed.text]).toEqual([6, whole.text]);
  });

  it('of OpenAI reads chats with log probabilities, whole and streamed', async () => {
    const { whole, streamed } = await run('chat');
    expect(whole).toMatchObject({ finish_reason: 'length', logprobs: 6 });
    expect(streamed.text).toBe(whole.text);
  });

  it('of OpenAI reads calls of tools, whole and streamed', async () => {
    const { name, arguments: all } = await run('tools');
    expect([name, all[1]]).toEqual(['search', all[0]]);
  });

  it('of OpenAI lists models, and gets errors as its own classes', async () => {
    const { models, refused } = await run('errors');
    expect(models).toEqual(['simulated']);
    expect(refused).toEqual([
      ['BadRequestError', 400, 'n'],
      ['BadRequestError', 400, null],
      ['BadRequestError', 400, 'temperature'],
    ]);
  });

  it('of Anthropic reads messages and calls of tools, whole and streamed, and gets errors as its own classes', async () => {
    const { texts, count, ...read } = printedBy(await startScript('anthropic_client.py', [gateway.url]));
    const message = ['max_tokens', 6, ['text']];
    const refused = ['BadRequestError', 400];
    expect(read).toEqual({ whole: message, streamed: message, tool: ['tool_use'], refused });
    expect([texts[1], count > 0]).toEqual([texts[0], true]);
  });

  it('of the Agents SDK runs an agent with the settings of README.md', async () => {
    const names = ['OPENAI_BASE_URL', 'OPENAI_API_KEY', 'OPENAI_DEFAULT_MODEL'];
    const settings = names.map((name) => [
      name,
      readmeSetting('OpenAI agents', new RegExp(`export ${name}`), gateway.service.httpPort),
    ]);
    const answer = printedBy(await startScript('agents_client.py', [], Object.fromEntries(settings)));
    expect(answer.trim().split(' ')).toHaveLength(400);
  });

  it('of OpenAI repeats a request that was answered 503', async () => {
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

  it('of OpenAI repeats a request after its own timeout, and joins the generation that runs', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
    const { whole } = await run('timeout');
    expect(whole.token_ids).toHaveLength(6);
    expect(await gateway.metric('gateway_joined_total')).toBeGreaterThan(0);
  });
});
