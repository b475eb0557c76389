import type { Decode } from './check';

/**
 * Decodes token ids by `/detokenize` of vLLM (answer in the field `prompt`) or SGLang (`text`). Special tokens are left
 * out, as in responses. Rejects if the engine does not have this route or refuses the ids.
 * @param url base URL of the engine, with or without `/v1`
 * @param apiKey sent as a bearer token
 */
export function decodeBy(url: string, apiKey?: string): Decode {
  const base = url.replace(/\/+$/, '').replace(/\/v1$/, '');
  const authorization = apiKey === undefined ? undefined : { authorization: `Bearer ${apiKey}` };
  let model: string | undefined;
  return async (tokens) => {
    model ??= await readModel(base, authorization);
    const answer = await fetch(`${base}/detokenize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization },
      body: JSON.stringify({ model, tokens, skip_special_tokens: true }),
    });
    if (!answer.ok) throw new Error(`${base}/detokenize answered ${answer.status}: ${await answer.text()}`);
    const { prompt, text } = (await answer.json()) as { prompt?: string; text?: string };
    const decoded = prompt ?? text;
    if (typeof decoded !== 'string') throw new Error(`${base}/detokenize answered without a text`);
    return decoded;
  };
}

async function readModel(base: string, headers: Record<string, string> | undefined): Promise<string> {
  const answer = await fetch(`${base}/v1/models`, { headers });
  const { data } = (await answer.json()) as { data?: { id?: string }[] };
  const id = data?.[0]?.id;
  if (id === undefined) throw new Error(`${base}/v1/models names no model`);
  return id;
}
