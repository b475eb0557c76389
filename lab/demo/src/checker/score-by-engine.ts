import type { ChatMessage } from '@broomwagon/contracts';
import type { EngineClient } from './engine-client';

/** Fields of a prompt of a prompts file. */
export interface ScoredPrompt {
  prompt?: string;
  messages?: ChatMessage[];
  promptTokenIds?: number[];
  engineFields?: Record<string, unknown>;
}

/** Reads prompts and responses as an engine does. */
export interface Scorer {
  /** Token ids of a prompt. */
  tokenize(prompt: ScoredPrompt): Promise<number[]>;
  /** Log probability of each token of a response, read as the end of one prompt. */
  score(promptIds: readonly number[], response: readonly number[]): Promise<number[]>;
}

/** Logprobs of tokens by their ids, for each token of a prompt; null for the first token. */
type VllmLogprobs = (Record<string, { logprob: number }> | null)[];
/** Log probability, token id, text. */
type SglangLogprob = [logprob: number | null, tokenId: number, text: string | null];

/** Log probability with which vLLM names a probability of zero. */
const IMPOSSIBLE = -9_999;

/** Scores by `prompt_logprobs` of vLLM or `input_token_logprobs` of SGLang. Rejects for another engine. */
export async function scoreBy(engine: EngineClient): Promise<Scorer> {
  const score = (await engine.readFamily()) === 'vllm' ? scoreByVllm(engine) : scoreBySglang(engine);
  const tokenize = async ({ prompt, messages, promptTokenIds, engineFields }: ScoredPrompt): Promise<number[]> => {
    if (promptTokenIds !== undefined) return promptTokenIds;
    // Tools and arguments of the chat template are fields of the engine, and a part of the rendered prompt.
    const body = { model: await engine.readModel(), ...engineFields, ...(messages ? { messages } : { prompt }) };
    const { tokens } = await engine.post<{ tokens?: number[] }>('/tokenize', body);
    if (!Array.isArray(tokens)) throw new Error('/tokenize answered without token ids');
    return tokens;
  };
  return { tokenize, score };
}

/** vLLM computes log probabilities of all tokens of the prompt, and must generate one token more. */
function scoreByVllm(engine: EngineClient): Scorer['score'] {
  return async (promptIds, response) => {
    const prompt = [...promptIds, ...response];
    const body = { model: await engine.readModel(), prompt, max_tokens: 1, prompt_logprobs: 0, temperature: 1 };
    const { choices } = await engine.post<{ choices?: { prompt_logprobs?: VllmLogprobs }[] }>('/v1/completions', body);
    const logprobs = choices?.[0]?.prompt_logprobs;
    return response.map((id, index) => {
      const logprob = logprobs?.[promptIds.length + index]?.[id]?.logprob;
      if (logprob === undefined) throw new Error('/v1/completions answered without a log probability of each token');
      return logprob;
    });
  };
}

/** SGLang begins with the entry of the last token of the prompt, which has no log probability. */
function scoreBySglang(engine: EngineClient): Scorer['score'] {
  return async (promptIds, response) => {
    const body = {
      input_ids: [...promptIds, ...response],
      sampling_params: { max_new_tokens: 1, temperature: 1 },
      return_logprob: true,
      logprob_start_len: promptIds.length - 1,
    };
    const answer = await engine.post<{ meta_info?: { input_token_logprobs?: SglangLogprob[] } }>('/generate', body);
    const entries = answer.meta_info?.input_token_logprobs?.slice(1);
    if (entries?.length !== response.length)
      throw new Error('/generate answered without a log probability of each token');
    // JSON has no number for a probability of zero.
    return entries.map(([logprob]) => logprob ?? IMPOSSIBLE);
  };
}
