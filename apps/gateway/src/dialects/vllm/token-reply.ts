import type { Generation } from '../../core/generation';
import type { Position } from '../../answers/format';
import { toFinishFields, sumUsage } from './choice-fields';

/** An answer of `/inference/v1/generate`, or a chunk of its stream, with the tokens after `from`. */
export function buildTokenReply(generation: Generation, from: Position) {
  const { tokens, end, input } = generation;
  const { prompt_token_ids: _prompt, kv_transfer_params: transfer, ...fields } = generation.report.fields;
  const ids = tokens.idsFrom(from.tokens) ?? [];
  const logprobs = input.sampling.logprobs ? tokens.logprobsFrom(from.tokens) : undefined;
  const choice: Record<string, unknown> = {
    ...fields,
    index: 0,
    token_ids: ids,
    logprobs: logprobs ? { content: logprobs.map((logprob, index) => toLogprobEntry(ids[index]!, logprob)) } : null,
    ...toFinishFields(generation),
  };
  return {
    request_id: generation.id,
    choices: [choice],
    ...(transfer !== undefined && { kv_transfer_params: transfer }),
    ...(end !== undefined && { usage: sumUsage([generation]) }),
  };
}

/** Entry of a token, with the fields of newer and of older versions of vLLM. */
function toLogprobEntry(id: number, logprob: number): object {
  return { token: `token_id:${id}`, token_id: id, logprob, bytes: null, top_logprobs: [] };
}
