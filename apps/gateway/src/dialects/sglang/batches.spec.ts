import { expect, it } from 'vitest';
import { fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, post } from '../../../../../test/system/gateway';
import { generate, LONG, PROMPT, useGateway } from '../../../../../test/system/gateway-bench';

const system = useGateway(7);
const N = 6;
/** The answer of an engine to a request of one prompt. */
const alone = async (prompt: object, seed: number) => {
  const { input_ids: _ids, ...body } = generate(N);
  const sampling = { ...body.sampling_params, sampling_seed: seed };
  return (await post(`${system.second.url}/generate`, { ...body, ...prompt, sampling_params: sampling })).body;
};

it.each([
  ['token ids', { input_ids: [PROMPT, [5]] }, [{ input_ids: PROMPT }, { input_ids: [5] }]],
  ['texts', { text: ['a', 'b'] }, [{ text: 'a' }, { text: 'b' }]],
  ['one prompt', { input_ids: [PROMPT] }, [{ input_ids: PROMPT }]],
])('a batch of %s is answered with a list, streams by index', async (_, batch, prompts) => {
  await system.registerSecond();
  const { input_ids: _ids, ...body } = generate(N, { rid: 'mine' });
  const wanted = await Promise.all(prompts.map((prompt) => alone(prompt, 7)));
  const { status, body: list } = await system.gateway.post('/generate', { ...body, ...batch });
  expect([status, list.map((one: { text: string }) => one.text)]).toEqual([200, wanted.map(({ text }) => text)]);
  expect(list.map((one: { meta_info: { id: string } }) => one.meta_info.id)).toEqual(
    prompts.length === 1 ? ['mine'] : ['mine-0', 'mine-1'],
  );
  const stream = await system.gateway.post('/generate', { ...body, ...batch, rid: 'other', stream: true });
  const last: string[] = [];
  for (const event of parseEvents(stream.body) as ({ index: number; text: string } | null)[]) {
    if (event !== null) last[event.index] = event.text;
  }
  expect(last).toEqual(wanted.map(({ text }) => text));
});

it('n gives samples with the next seeds, of each prompt of a batch', async () => {
  await system.registerSecond();
  const sampling = { ...generate(N).sampling_params, n: 2 };
  const batch = { ...generate(N, { input_ids: [PROMPT, [5]], sampling_params: sampling }) };
  const wanted = await Promise.all(
    [PROMPT, [5]].flatMap((ids) => [7, 8].map((seed) => alone({ input_ids: ids }, seed))),
  );
  const { body } = await system.gateway.post('/generate', batch);
  expect(body.map((one: { output_ids: number[] }) => one.output_ids)).toEqual(wanted.map((one) => one.output_ids));
  const single = await system.gateway.post('/generate', { ...batch, input_ids: PROMPT });
  expect(single.body).toHaveLength(2);
});

it('a list of a field is one value for each prompt of the batch', async () => {
  const body = { ...generate(N), input_ids: [PROMPT, [5]], lora_path: ['a'] };
  const { status, body: answer } = await system.gateway.post('/generate', body);
  expect([status, answer.error.param]).toEqual([400, 'lora_path']);
  const { body: list } = await system.gateway.post('/generate', {
    ...body,
    lora_path: 'a',
    return_logprob: [true, false],
  });
  type Meta = { meta_info: { output_token_logprobs?: unknown[] } };
  expect(list.map(({ meta_info: meta }: Meta) => meta.output_token_logprobs?.length)).toEqual([N, undefined]);
});

it('each prompt may have its own id and sampling parameters', async () => {
  const sampling = (max: number) => ({ ...generate(max).sampling_params });
  const batch = { input_ids: [PROMPT, [5]], sampling_params: [sampling(N), sampling(LONG)], rid: ['a', 'b'] };
  const sent = system.gateway.post('/generate', batch);
  const joined = system.gateway.post('/generate', batch);
  // An abort by the id of one prompt ends only the response of this prompt.
  await expect.poll(() => system.metric('gateway_generations_running')).toBe(1);
  await system.gateway.post('/abort_request', { rid: 'b' });
  type Meta = { meta_info: { id: string; completion_tokens: number; finish_reason: { type: string } } };
  const { body } = await sent;
  const ends = body.map(({ meta_info: { id, finish_reason: reason } }: Meta) => [id, reason.type]);
  expect(ends).toEqual([
    ['a', 'length'],
    ['b', 'abort'],
  ]);
  expect(body[0].meta_info.completion_tokens).toBe(N);
  expect((await joined).body).toMatchObject(
    body.map(({ output_ids: ids }: { output_ids: number[] }) => ({ output_ids: ids })),
  );
  expect((await fetchState(system.bench.engine.url)).requests.received).toBe(2);
});
