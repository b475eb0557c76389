import OpenAI from 'openai';
import { expect, it } from 'vitest';
import { inject, fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { useGateway } from '../../../../../test/system/gateway-bench';

const system = useGateway(5);
const TOKENS = 150;
/** All parameters that the chat route of SGLang would take from the model. */
const SAMPLING = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 };
const chat = {
  model: 'simulated',
  messages: [{ role: 'user', content: 'How many clips?' }],
  max_tokens: TOKENS,
  seed: 7,
  logprobs: true,
  return_token_ids: true,
};
type Answer = OpenAI.ChatCompletion & { prompt_token_ids?: number[] };

/** Sends a chat by the client of OpenAI, and returns the answer that the client reads. */
async function ask(stream: boolean, more: object): Promise<object> {
  const client = new OpenAI({ baseURL: `${system.gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const body = { ...chat, ...more } as OpenAI.ChatCompletionCreateParamsNonStreaming;
  const ids: number[] = [];
  let answer: Answer;
  if (stream) {
    const events = client.chat.completions.stream({ ...body, stream: true, stream_options: { include_usage: true } });
    events.on('chunk', ({ choices: [choice] }) =>
      ids.push(...((choice as unknown as { token_ids?: number[] } | undefined)?.token_ids ?? [])),
    );
    answer = await events.finalChatCompletion();
  } else {
    answer = await client.chat.completions.create(body);
    ids.push(...((answer.choices[0] as unknown as { token_ids?: number[] | null }).token_ids ?? []));
  }
  const [{ message, logprobs, finish_reason: reason }] = answer.choices as [OpenAI.ChatCompletion.Choice];
  return { content: message.content, ids, logprobs: logprobs?.content, reason, usage: answer.usage };
}

/** The first engine stops sending after 6 tokens; then it dies, and the second one is registered. */
async function cut(answered: Promise<unknown>): Promise<void> {
  answered.catch(() => undefined);
  await expect.poll(() => system.metric('tokens_generated_total')).toBe(6);
  await system.registerSecond();
  await system.bench.engine.close();
}

it.each([false, true])('a chat is rendered by its engine, and continued by token ids; streamed: %s', async (stream) => {
  await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const answered = ask(stream, SAMPLING);
  await cut(answered);
  const answer = await answered;
  const { resumeMismatches, tokensMade } = await fetchState(system.second.url);
  expect([resumeMismatches, tokensMade]).toEqual([0, TOKENS - 6]);
  expect(answer).toEqual(await ask(stream, SAMPLING));
  expect(answer).toMatchObject({ reason: 'length', usage: { completion_tokens: TOKENS } });
  expect((answer as { ids: number[] }).ids).toHaveLength(TOKENS);
});

it.each([
  ['parameters that the engine takes from the model', { temperature: 1 }],
  ['tools', { ...SAMPLING, tools: [{ type: 'function', function: { name: 'search' } }] }],
  ['an adapter in the name of the model', { ...SAMPLING, model: 'simulated:lora' }],
])('with %s a chat is run by the chat route, and begins again', async (_, more) => {
  await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const answered = ask(false, more);
  await cut(answered);
  expect(await answered).toMatchObject({ usage: { completion_tokens: TOKENS } });
  expect((await fetchState(system.second.url)).tokensMade).toBe(TOKENS);
});
