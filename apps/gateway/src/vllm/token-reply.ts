import type { Generation, GenerationEnd } from '../generations/generation';
import type { Position } from '../http/generation-responder';

/** An answer of `/inference/v1/generate`, or a chunk of its stream, with the tokens after `from`. */
export function tokenReplyOf(generation: Generation, from: Position): object {
  const { tokens, end, input, spans } = generation;
  const { prompt_token_ids: _prompt, kv_transfer_params: transfer, ...fields } = generation.engineFields;
  const ids = tokens.ids.slice(from.tokens);
  const logprobs = input.sampling.logprobs ? tokens.allLogprobs?.slice(from.tokens) : undefined;
  const choice = {
    ...fields,
    index: 0,
    token_ids: ids,
    logprobs: logprobs ? { content: logprobs.map((logprob, index) => entryOf(ids[index]!, logprob)) } : null,
    ...finishOf(end),
    ...(end !== undefined && { weight_versions: spans }),
  };
  const prompt = generation.promptTokens ?? input.prompt.promptTokenIds?.length ?? 0;
  const usage = { prompt_tokens: prompt, completion_tokens: tokens.count, total_tokens: prompt + tokens.count };
  return {
    request_id: generation.id,
    choices: [choice],
    ...(transfer !== undefined && { kv_transfer_params: transfer }),
    ...(end !== undefined && { usage }),
  };
}

/** The fields of newer and of older versions of vLLM. */
function entryOf(id: number, logprob: number): object {
  return { token: `token_id:${id}`, token_id: id, logprob, bytes: null, top_logprobs: [] };
}

function finishOf(end: GenerationEnd | undefined): object {
  if (end === undefined) return { finish_reason: null };
  const stop = end.reason === 'stop' && end.matched !== undefined ? { stop_reason: end.matched } : {};
  return { finish_reason: end.reason, ...stop };
}
