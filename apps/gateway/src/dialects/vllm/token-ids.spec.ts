import { describe, expect, it } from 'vitest';
import { inject, startEngine, fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, type Reply } from '../../../../../test/system/gateway';
import { LONG, PROMPT, useGateway } from '../../../../../test/system/gateway-bench';

const system = useGateway(6);

describe('/inference/v1/generate', () => {
  const tokens = (maxTokens: number, more: object = {}) => ({
    token_ids: PROMPT,
    model: 'simulated',
    cache_salt: 'v1',
    sampling_params: { max_tokens: maxTokens, seed: 7, logprobs: 0 },
    ...more,
  });
  const expectTokens = async (choice: Reply['body']) => {
    const { body: whole } = await system.uncut(choice.token_ids.length);
    expect(choice.token_ids).toEqual(whole.output_ids);
    expect(choice.logprobs.content.map(({ token }: { token: string }) => token)).toEqual(
      whole.output_ids.map((id: number) => `token_id:${id}`),
    );
    expect(choice.logprobs.content.map(({ logprob }: { logprob: number }) => logprob)).toEqual(
      whole.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob),
    );
  };

  it('answers with token ids, logprobs and usage', async () => {
    const { status, body } = await system.gateway.post('/inference/v1/generate', tokens(40, { request_id: 'q' }));
    expect([status, body.request_id]).toEqual([200, 'q']);
    expect(body.choices).toMatchObject([
      { index: 0, finish_reason: 'length', weight_versions: [{ version: '0', start: 0, end: 40 }] },
    ]);
    expect(body.usage).toEqual({ prompt_tokens: 3, completion_tokens: 40, total_tokens: 43 });
    await expectTokens(body.choices[0]);
  });

  it.each([false, true])('is continued on an engine of another dialect; streamed: %s', async (stream) => {
    const vllm = await startEngine('vllm', { speed: 20, lengths: { name: 'test', getLength: () => 8_000 } });
    await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 6 });
    const reply = system.gateway.post('/inference/v1/generate', tokens(LONG, { stream }));
    await expect.poll(() => system.metric('tokens_generated_total')).toBe(6);
    await system.bench.register({
      serverId: 's3',
      instanceId: 'i3',
      endpoint: vllm.url,
      dialect: 'vllm',
      model: 'simulated',
    });
    await system.bench.engine.close();
    const { body } = await reply;
    if (!stream) await expectTokens(body.choices[0]);
    else {
      const events = parseEvents(body) as Reply['body'][];
      expect(events.pop()).toBeNull();
      const choices = events.map((event) => event.choices[0]);
      const ids = choices.flatMap(({ token_ids: some }) => some);
      const content = choices.flatMap(({ logprobs }) => logprobs.content);
      await expectTokens({ token_ids: ids, logprobs: { content } });
      expect(choices.map(({ finish_reason: reason }) => reason)).toEqual([...choices.slice(1).fill(null), 'length']);
      expect(events.at(-1).usage.completion_tokens).toBe(LONG);
    }
    const { resumeMismatches, requests } = await fetchState(vllm.url);
    expect([resumeMismatches, requests.received]).toEqual([0, 1]);
    await vllm.close();
  });

  it('refuses input that is wrong', async () => {
    const wrong: [string, object, string][] = [
      ['no prompt', { token_ids: undefined }, 'token_ids'],
      ['a prompt of text', { token_ids: 'a' }, 'token_ids'],
      ['an empty prompt', { token_ids: [] }, 'token_ids'],
      ['n of 10,000', { sampling_params: { max_tokens: 1, n: 10_000 } }, 'sampling_params.n'],
      ['a list as id', { request_id: ['a'] }, 'request_id'],
    ];
    for (const [name, more, expected] of wrong) {
      const { status, body } = await system.gateway.post('/inference/v1/generate', tokens(1, more));
      expect([status, body.error.type, body.error.param], name).toEqual([400, 'VALIDATION_FAILED', expected]);
    }
  });

  it('has the models of the pool beside it', async () => {
    await system.startSecond({ model: 'large', maxModelTokens: 4_096 });
    await system.registerSecond({ model: 'large', capabilities: { maxModelTokens: 4_096 } });
    const { status, body } = await system.gateway.get('/v1/models');
    const models = body.data.map(({ id, max_model_len: length }: Record<string, unknown>) => [id, length]);
    expect([status, body.object, models]).toEqual([200, 'list', expect.arrayContaining([['large', 4_096]])]);
  });
});
