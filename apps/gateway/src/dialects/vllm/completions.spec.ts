import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { beforeEach, expect, it } from 'vitest';
import { inEngine, inject, startEngine, fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { post } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

const PROMPT = [11, 12, 13];
const LENGTHS = { name: 'test', getLength: () => 8_000 };
let client: OpenAI;

const system = useGateway(30, { dialect: 'vllm', speed: 20 });
let { bench, gateway, second } = system;
beforeEach(() => {
  ({ bench, gateway, second } = system);
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
});

const leases = async () => (await bench.client.call(bench.pool, 'lb.status', {})).leases;
/** Fields of vLLM that the client of OpenAI does not have in its types. */
const EXTRAS = { return_token_ids: true, return_tokens_as_token_ids: true };
const completion = { model: 'simulated', prompt: PROMPT, max_tokens: 40, seed: 7, logprobs: 0, ...EXTRAS };
type Choice = OpenAI.CompletionChoice & { token_ids: number[]; prompt_token_ids?: number[] };
const getChoices = (answer: OpenAI.Completion) => answer.choices as Choice[];

/** The choice of an engine that was not cut. */
async function uncut(more: object = {}): Promise<Choice> {
  const { body } = await post(`${second.url}/v1/completions`, { ...completion, ...more });
  return body.choices[0];
}

function expectSame(choice: Choice, whole: Choice): void {
  expect([choice.text, choice.token_ids, choice.finish_reason]).toEqual([whole.text, whole.token_ids, 'length']);
  expect(choice.logprobs!.token_logprobs).toEqual(whole.logprobs!.token_logprobs);
  expect(choice.logprobs!.tokens).toEqual(whole.token_ids.map((id) => `token_id:${id}`));
}

/** All chunks of a stream, put together by choice, and the usage of the last one. */
async function collect(stream: AsyncIterable<OpenAI.Completion>) {
  const choices: Choice[] = [];
  let usage: OpenAI.CompletionUsage | undefined;
  let chunks = 0;
  for await (const chunk of stream) {
    chunks += 1;
    usage = chunk.usage;
    for (const part of getChoices(chunk)) {
      const whole = choices[part.index];
      if (whole === undefined) {
        choices[part.index] = part;
        continue;
      }
      whole.text += part.text;
      whole.token_ids.push(...part.token_ids);
      whole.logprobs!.token_logprobs!.push(...part.logprobs!.token_logprobs!);
      whole.logprobs!.tokens!.push(...part.logprobs!.tokens!);
      whole.finish_reason = part.finish_reason;
    }
  }
  return { choices, usage, chunks };
}

it.each([
  ['token ids', PROMPT, PROMPT],
  ['text', 'Hello', undefined],
])('a prompt of %s is completed, whole and as a stream', async (_, prompt, promptIds) => {
  const whole = await uncut({ prompt });
  const answer = await client.completions.create({ ...completion, prompt });
  expectSame(getChoices(answer)[0]!, whole);
  expect(getChoices(answer)[0]!.prompt_token_ids).toEqual(promptIds);
  expect([answer.object, answer.model, answer.id.slice(0, 5)]).toEqual(['text_completion', 'simulated', 'cmpl-']);
  const { prompt_tokens: promptTokens } = answer.usage!;
  expect(answer.usage).toEqual({ prompt_tokens: promptTokens, completion_tokens: 40, total_tokens: promptTokens + 40 });

  const options = { stream: true, stream_options: { include_usage: true } } as const;
  const streamed = await collect(await client.completions.create({ ...completion, prompt, ...options }));
  expectSame(streamed.choices[0]!, whole);
  expect(streamed.usage).toEqual(answer.usage);
  expect(streamed.chunks).toBeGreaterThan(1);
  const without = await collect(await client.completions.create({ ...completion, prompt, stream: true }));
  expect(without.usage).toBeUndefined();
});

it.each([
  ['/v1/completions', { prompt: PROMPT }],
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] }],
])('a stream of %s counts its tokens in each chunk if it is asked for it', async (path, prompt) => {
  const options = { include_usage: true, continuous_usage_stats: true };
  const body = { ...prompt, max_tokens: 40, return_token_ids: true, stream: true, stream_options: options };
  const { body: text } = await gateway.post(path, body);
  const events = String(text)
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'));
  let tokens = 0;
  for (const event of events) {
    const { choices, usage } = JSON.parse(event.slice('data: '.length)) as OpenAI.Completion;
    const [choice] = choices as Choice[];
    tokens += choice?.token_ids?.length ?? 0;
    // The first chunk of a chat has the role only.
    if (usage || tokens > 0) expect(usage!.completion_tokens).toBe(tokens);
    if (usage) expect(usage.prompt_tokens).toBeGreaterThan(0);
  }
  expect(tokens).toBe(40);
});

it.each([false, true])('n and several prompts give a choice for each; streamed: %s', async (stream) => {
  const body = { ...completion, prompt: [PROMPT, [5]], n: 2, stream_options: { include_usage: true } };
  const answer = stream
    ? await collect(await client.completions.create({ ...body, stream: true }))
    : await client.completions.create({ ...body, stream: false });
  const choices = answer.choices as Choice[];
  // Each choice of a prompt has the next seed, as in vLLM.
  const wanted = await Promise.all(
    [PROMPT, [5]].flatMap((prompt) => [uncut({ prompt, seed: 7 }), uncut({ prompt, seed: 8 })]),
  );
  expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  for (const [index, choice] of choices.entries()) expectSame(choice, wanted[index]!);
  expect(new Set(choices.map(({ text }) => text)).size).toBe(4);
  expect(answer.usage).toEqual({ prompt_tokens: 4, completion_tokens: 160, total_tokens: 164 });
});

it.each([
  [PROMPT, false],
  [PROMPT, true],
  ['Hello', false],
  ['Hello', true],
])('the prompt %j is continued on another engine; streamed: %s', async (prompt, stream) => {
  const third = await startEngine('sglang', { speed: 20, lengths: LENGTHS });
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
  const body = { ...completion, prompt };
  const answered = stream
    ? client.completions.create({ ...body, stream: true }).then(collect)
    : client.completions.create({ ...body, stream: false });
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(7);
  await bench.register({ serverId: 's3', instanceId: 'i3', endpoint: third.url, dialect: 'sglang' });
  await bench.engine.close();
  expectSame((await answered).choices[0] as Choice, await uncut({ prompt }));
  const { resumeMismatches, requests } = await fetchState(third.url);
  expect([resumeMismatches, requests.received]).toEqual([0, 1]);
  await third.close();
});

it.each([false, true])(
  'texts, offsets and alternatives of tokens equal an uncut response; streamed: %s',
  async (stream) => {
    const body = { ...completion, logprobs: 2, return_tokens_as_token_ids: false };
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
    const names = { tokens: [] as string[], top_logprobs: [] as object[], text_offset: [] as number[] };
    const take = ({ tokens, top_logprobs: tops, text_offset: offsets }: OpenAI.CompletionChoice.Logprobs) => {
      names.tokens.push(...tokens!);
      names.top_logprobs.push(...tops!);
      names.text_offset.push(...offsets!);
    };
    const answered = (async () => {
      if (!stream) return take((await client.completions.create({ ...body, stream: false })).choices[0]!.logprobs!);
      for await (const { choices } of await client.completions.create({ ...body, stream: true })) {
        if (choices[0]) take(choices[0].logprobs!);
      }
    })();
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(7);
    await system.registerSecond();
    await bench.engine.close();
    await answered;
    const { tokens, top_logprobs: tops } = (await uncut(body)).logprobs!;
    const offsets = tokens!.map((_, index) => tokens!.slice(0, index).join('').length);
    expect(names).toEqual({ tokens, top_logprobs: tops, text_offset: offsets });
  },
);

it('ids, stop texts and fields that are not read go to the engine; a call with an unknown model is not repeated', async () => {
  const bodies: Record<string, unknown>[] = [];
  const engine = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      if (request.url !== '/v1/completions') return void response.writeHead(404).end();
      const body = JSON.parse(text) as Record<string, unknown>;
      bodies.push(body);
      if (body.model === 'none') {
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end('{"error":{"message":"The model `none` does not exist.","code":404}}');
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const choice = { index: 0, text: 'x', token_ids: [5], finish_reason: 'stop', stop_reason: 'END' };
      const more = { prompt_token_ids: [1, 2], routed_experts: 'AAAA' };
      const usage = { prompt_tokens: 2, completion_tokens: 1 };
      response.end(`data: ${JSON.stringify({ choices: [{ ...choice, ...more }], usage })}\n\ndata: [DONE]\n\n`);
    });
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
  await bench.register({
    serverId: 's3',
    instanceId: 'i3',
    endpoint,
    dialect: 'vllm',
    model: 'simulated',
    probe: false,
  });
  const stop = { stop: 'END', stop_token_ids: [2], cache_salt: 'a', logit_bias: { 5: 1 }, user: 'me' };
  const [choice] = getChoices(await client.completions.create({ ...completion, prompt: 'Hello', ...stop }));
  // The cache salt begins with the salt of the lease. The client's salt follows.
  const cache_salt = expect.stringMatching(/^\d+\.a$/) as string;
  const sent = { ...stop, cache_salt, stop: ['END'], prompt: 'Hello', model: 'simulated', stream: true };
  expect(bodies[0]).toMatchObject(sent);
  expect(choice).toMatchObject({
    text: 'x',
    finish_reason: 'stop',
    stop_reason: 'END',
    token_ids: [5],
    prompt_token_ids: [1, 2],
    routed_experts: 'AAAA',
  });
  const answer = client.completions.create({ ...completion, model: 'none' });
  await expect(answer).rejects.toMatchObject({ status: 404, code: 'model_not_found', param: 'model' });
  expect(bodies).toHaveLength(2);
  engine.closeAllConnections();
  engine.close();
});

it('a client that disconnects, or an error of one choice, ends all choices', async () => {
  const body = { ...completion, max_tokens: 8_000, n: 4, stream: true } as const;
  const stream = await client.completions.create(body);
  await stream[Symbol.asyncIterator]().next();
  await expect.poll(leases).toBe(4);
  stream.controller.abort();
  await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
  await expect.poll(leases).toBe(0);
  await inject(bench.engine.url, { kind: 'error-400' });
  await expect(client.completions.create({ ...body, stream: false })).rejects.toMatchObject({
    type: 'ENGINE_REJECTED',
  });
  await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
});

it('input that is wrong is refused with the field', async () => {
  const wrong: [string, object, string][] = [
    ['no prompt', { prompt: undefined }, 'prompt'],
    ['an empty prompt', { prompt: '' }, 'prompt'],
    ['an empty list', { prompt: [] }, 'prompt'],
    ['ids and texts', { prompt: ['a', 1] }, 'prompt'],
    ['too many prompts', { prompt: Array.from({ length: 200 }, () => 'a') }, 'prompt'],
    ['n of 10,000', { n: 10_000 }, 'n'],
    ['n of 100 for two prompts', { prompt: ['a', 'b'], n: 100 }, 'n'],
    ['logprobs of another type', { logprobs: '5' }, 'logprobs'],
    ['a negative budget', { max_tokens: -1 }, 'max_tokens'],
    ['a number as text', { top_p: '1' }, 'top_p'],
    ['a stop list of 1 MB', { stop: ['x'.repeat(1e6)] }, 'stop'],
    ['options of another type', { stream_options: [1] }, 'stream_options'],
    ['a model of another type', { model: 5 }, 'model'],
    ['a list as id', { request_id: ['a'] }, 'request_id'],
  ];
  for (const [name, more, param] of wrong) {
    const body = { ...completion, ...more } as OpenAI.CompletionCreateParamsNonStreaming;
    const failure: unknown = await client.completions.create(body).catch((error: unknown) => error);
    expect(failure, name).toBeInstanceOf(OpenAI.BadRequestError);
    expect(failure, name).toMatchObject({ type: 'VALIDATION_FAILED', param });
  }
});
