import { describe, expect, it } from 'vitest';
import { startEngine } from '../test-engine';

const PROMPT = [5, 6, 7];
/** Prompt token ids as the first tokens of a request, then the ids of a response. */
type Score = (tokenIds: number[]) => Promise<(number | null)[]>;

async function post<T>(url: string, body: object): Promise<T> {
  const answer = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  expect(answer.status).toBe(200);
  return (await answer.json()) as T;
}

interface Generated {
  tokenIds: number[];
  logprobs: number[];
}

async function expectTruth({ tokenIds, logprobs }: Generated, score: Score): Promise<void> {
  const ofResponse = async (ids: number[]) => (await score([...PROMPT, ...ids])).slice(PROMPT.length);
  expect(await ofResponse(tokenIds)).toEqual(logprobs);
  const lost = tokenIds.toSpliced(10, 1);
  const withoutOne = await ofResponse(lost);
  expect(withoutOne.slice(0, 10)).toEqual(logprobs.slice(0, 10));
  expect(withoutOne.slice(10).every((logprob) => logprob! < -5)).toBe(true);
}

describe('log probabilities of a prompt', () => {
  it('are those of the response that the prompt ends with, as vLLM writes them', async () => {
    const engine = await startEngine('vllm');
    const route = `${engine.url}/v1/completions`;
    interface Choice {
      token_ids: number[];
      logprobs: { token_logprobs: number[] };
      prompt_logprobs: (Record<string, { logprob: number }> | null)[];
    }
    const call = async (body: object) =>
      (await post<{ choices: [Choice] }>(route, { model: 'simulated', max_tokens: 1, ...body })).choices[0];
    const made = await call({ prompt: PROMPT, seed: 3, max_tokens: 40, return_token_ids: true, logprobs: 1 });
    await expectTruth({ tokenIds: made.token_ids, logprobs: made.logprobs.token_logprobs }, async (prompt) =>
      (await call({ prompt, prompt_logprobs: 0 })).prompt_logprobs.map(
        (entry, index) => entry && entry[prompt[index]!]!.logprob,
      ),
    );
    const streamed = await fetch(route, {
      method: 'POST',
      body: JSON.stringify({ prompt: PROMPT, prompt_logprobs: 0, stream: true }),
    });
    expect(streamed.status).toBe(400);
    await engine.close();
  });

  it('are those of the response that the prompt ends with, as SGLang writes them', async () => {
    const engine = await startEngine('sglang');
    interface Answer {
      output_ids: number[];
      meta_info: { input_token_logprobs?: [number | null, number][]; output_token_logprobs: [number, number][] };
    }
    const call = (input_ids: number[], max_new_tokens: number, more: object = {}) =>
      post<Answer>(`${engine.url}/generate`, {
        input_ids,
        return_logprob: true,
        sampling_params: { max_new_tokens, sampling_seed: 3 },
        ...more,
      });
    const made = await call(PROMPT, 40);
    expect(made.meta_info.input_token_logprobs).toBeUndefined();
    const logprobs = made.meta_info.output_token_logprobs.map(([logprob]) => logprob);
    await expectTruth({ tokenIds: made.output_ids, logprobs }, async (ids) => {
      const { meta_info: scored } = await call(ids, 1, { logprob_start_len: 2 });
      expect(scored.input_token_logprobs!.map(([, id]) => id)).toEqual(ids.slice(2));
      expect(scored.input_token_logprobs![0]![0]).toBeNull();
      return [null, null, ...scored.input_token_logprobs!.map(([logprob]) => logprob)];
    });
    await engine.close();
  });
});
