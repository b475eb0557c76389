import type { Decode } from './check';
import type { EngineClient } from './engine-client';

/**
 * Decodes token ids by `/detokenize` of vLLM (answer in the field `prompt`) or SGLang (`text`). Special tokens are left
 * out, as in responses. Rejects if the engine does not have this route or refuses the ids.
 */
export function decodeBy(engine: EngineClient): Decode {
  return async (tokens) => {
    const body = { model: await engine.readModel(), tokens, skip_special_tokens: true };
    const { prompt, text } = await engine.post<{ prompt?: string; text?: string }>('/detokenize', body);
    const decoded = prompt ?? text;
    if (typeof decoded !== 'string') throw new Error('/detokenize answered without a text');
    return decoded;
  };
}
