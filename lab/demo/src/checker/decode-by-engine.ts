import type { Decode } from './check';
import type { EngineClient } from './engine-client';

/** Names of special tokens, such as `</s>`, `<|im_end|>` or `[EOS]`. */
const SPECIAL = /<[^<>\s]{1,40}>|\[[A-Z_]{1,20}\]/g;

/**
 * Decodes token ids by `/detokenize` of vLLM (answer in the field `prompt`) or SGLang (`text`). Rejects if the engine does
 * not have this route or refuses the ids.
 */
export function decodeBy(engine: EngineClient): Decode {
  const known = new Map<string, Promise<number | undefined>>();
  const call = async (tokens: readonly number[]): Promise<string> => {
    const body = { model: await engine.readModel(), tokens, skip_special_tokens: true };
    const { prompt, text } = await engine.post<{ prompt?: string; text?: string }>('/detokenize', body);
    const decoded = prompt ?? text;
    if (typeof decoded !== 'string') throw new Error('/detokenize answered without a text');
    return decoded;
  };
  /** Id of a token by its name; undefined for a text of several tokens. */
  const findId = async (name: string): Promise<number | undefined> => {
    const body = { model: await engine.readModel(), prompt: name, add_special_tokens: false };
    const { tokens = [] } = await engine.post<{ tokens?: number[] }>('/tokenize', body);
    return tokens.length === 1 ? tokens[0] : undefined;
  };
  return async (tokens, text) => {
    const decoded = await call(tokens);
    // vLLM leaves out special tokens in responses, and only there.
    const names = new Set(text === undefined ? [] : decoded.match(SPECIAL)?.filter((name) => !text.includes(name)));
    if (names.size === 0) return decoded;
    const special = await Promise.all(
      [...names].map((name) => {
        if (!known.has(name)) known.set(name, findId(name));
        return known.get(name)!;
      }),
    );
    return call(tokens.filter((id) => !special.includes(id)));
  };
}
