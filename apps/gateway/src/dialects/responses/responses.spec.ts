import OpenAI from 'openai';
import { beforeEach, expect, it } from 'vitest';
import { chatOfResponses } from './responses-request';
import { inEngine, inject } from '../../../../../lab/engine-simulator/src/test-engine';
import { post } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

let client: OpenAI;

const system = useGateway(10, { dialect: 'vllm', tokens: 12, speed: 20 });
let { bench, gateway, second } = system;
beforeEach(() => {
  ({ bench, gateway, second } = system);
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
});

/** The seed is a field of the engine. */
const request = { model: 'simulated', instructions: 'Be short.', input: 'How many clips?', seed: 7 };
const TOOL = { type: 'function', name: 'search', parameters: { type: 'object' }, strict: null } as const;
/** Sends the chat of the request to an engine itself. */
async function chat(more: object = {}, url = bench.engine.url) {
  return (await post(`${url}/v1/chat/completions`, chatOfResponses({ ...request, ...more }))).body;
}
const ask = (stream: boolean, more: object = {}): Promise<OpenAI.Responses.Response> =>
  stream
    ? client.responses.stream({ ...request, ...more }).finalResponse()
    : client.responses.create({ ...request, ...more, stream: false });

it.each([false, true])('a response has the text of the chat; streamed: %s', async (stream) => {
  const [whole, response] = [await chat(), await ask(stream)];
  expect(response).toMatchObject({
    object: 'response',
    status: 'completed',
    model: 'simulated',
    output: [{ type: 'message', role: 'assistant', status: 'completed' }],
    output_text: whole.choices[0].message.content,
    usage: { input_tokens: whole.usage.prompt_tokens, output_tokens: 12 },
  });
  const short = await ask(stream, { max_output_tokens: 5 });
  expect([short.status, short.incomplete_details]).toEqual(['incomplete', { reason: 'max_output_tokens' }]);
});

it.each([false, true])('functions are called, and their results answered; streamed: %s', async (stream) => {
  const { output } = await ask(stream, { tools: [TOOL], tool_choice: 'required' });
  const wanted = (await chat({ tools: [TOOL] })).choices[0].message.tool_calls[0].function;
  expect(output).toMatchObject([{ type: 'function_call', name: 'search', arguments: wanted.arguments }]);
  const { call_id: id } = output[0] as OpenAI.Responses.ResponseFunctionToolCall;
  const result = { type: 'function_call_output', call_id: id, output: '4' };
  const next = await ask(stream, { input: [{ role: 'user', content: request.input }, ...output, result] });
  expect(next.output).toMatchObject([{ type: 'message' }]);
});

it('the text of a stream is in its deltas, also when the engine is replaced', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 5 });
  const stream = await client.responses.create({ ...request, stream: true });
  const types: string[] = [];
  const numbers: number[] = [];
  let text = '';
  for await (const event of stream) {
    types.push(event.type);
    numbers.push(event.sequence_number);
    if (event.type !== 'response.output_text.delta') continue;
    if (text === '') {
      await system.registerSecond();
      await bench.engine.close();
    }
    text += event.delta;
  }
  expect(text).toBe((await chat({}, second.url)).choices[0].message.content);
  expect(numbers).toEqual(numbers.map((_, index) => index));
  expect([...new Set(types)]).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ]);
});

it('items become messages of a chat', () => {
  const input = [
    { role: 'developer', content: 'a' },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'b' },
        { type: 'input_image', image_url: 'data:c' },
      ],
    },
    { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'd' }] },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'e' }] },
    { type: 'function_call', call_id: '1', name: 'search', arguments: '{}' },
    { type: 'function_call_output', call_id: '1', output: [{ type: 'input_text', text: 'f' }] },
  ];
  const text = { format: { type: 'json_schema', name: 'g', schema: {} } };
  const more = { text, reasoning: { effort: 'low' }, tool_choice: { type: 'function', name: 'search' }, store: true };
  expect(chatOfResponses({ input, tools: [TOOL], top_p: 0.5, max_output_tokens: 4, ...more })).toEqual({
    messages: [
      { role: 'system', content: 'a' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'b' },
          { type: 'image_url', image_url: { url: 'data:c' } },
        ],
      },
      {
        role: 'assistant',
        content: 'e',
        reasoning: 'd',
        tool_calls: [{ id: '1', type: 'function', function: { name: 'search', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: '1', content: 'f' },
    ],
    n: 1,
    max_tokens: 4,
    tools: [{ type: 'function', function: { name: 'search', parameters: { type: 'object' } } }],
    tool_choice: { type: 'function', function: { name: 'search' } },
    response_format: { type: 'json_schema', json_schema: { name: 'g', schema: {} } },
    reasoning_effort: 'low',
    top_p: 0.5,
  });
});

it('stored responses, unsupported fields and wrong input are refused; the client throws an error in a stream', async () => {
  const wrong: [string, object, string][] = [
    ['an earlier response', { previous_response_id: 'resp_1' }, 'previous_response_id'],
    ['a conversation', { conversation: 'a' }, 'conversation'],
    ['the background', { background: true }, 'background'],
    ['no input', { input: undefined }, 'input'],
    ['a number', { input: 5 }, 'input'],
    ['an item of another type', { input: [{ type: 'item_reference', id: 'a' }] }, 'input.0.type'],
    ['a part of another type', { input: [{ role: 'user', content: [{ type: 'input_file' }] }] }, 'input.0.content.0'],
    ['another role', { input: [{ role: 'tool', content: 'a' }] }, 'input.0.role'],
    ['a tool of the server', { tools: [{ type: 'web_search' }] }, 'tools.0.type'],
    ['log probabilities', { include: ['message.output_text.logprobs'] }, 'include'],
    ['instructions of another type', { instructions: ['a'] }, 'instructions'],
  ];
  for (const [name, more, param] of wrong) {
    const failure: unknown = await ask(false, more).catch((error: unknown) => error);
    expect(failure, name).toBeInstanceOf(OpenAI.BadRequestError);
    expect(failure, name).toMatchObject({ type: 'VALIDATION_FAILED', param });
  }
  await inject(bench.engine.url, { kind: 'close-mid-stream', afterTokens: 3 });
  await expect(ask(true, { tools: [TOOL] })).rejects.toMatchObject({ type: 'ENGINE_ERROR' });
  await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
});
