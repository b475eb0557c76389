import type { Generation, GenerationEnd } from '../generations/generation';
import type { Position } from '../http/format';

/** An answer of `/generate`, or a chunk of its stream, with the tokens after `from`. */
export function replyOf(generation: Generation, from: Position): object {
  const { tokens } = generation;
  const ids = tokens.idsFrom(from.tokens);
  return {
    text: tokens.textFrom(from.characters),
    ...(ids && { output_ids: ids }),
    meta_info: metaOf(generation, from),
  };
}

function metaOf(generation: Generation, from: Position): object {
  const { tokens, input, spans, end } = generation;
  const { promptTokenIds } = input.prompt;
  const logprobs = input.sampling.logprobs ? tokens.logprobsFrom(from.tokens) : undefined;
  const version = spans.at(-1)?.version;
  return {
    ...generation.engineFields,
    id: generation.id,
    finish_reason: end === undefined ? null : finishReasonOf(generation, end),
    prompt_tokens: generation.promptTokens ?? promptTokenIds?.length ?? 0,
    completion_tokens: tokens.count,
    cached_tokens: generation.cachedTokens ?? 0,
    ...(version !== undefined && { weight_version: version, weight_versions: spans }),
    ...(logprobs && { output_token_logprobs: entriesOf(logprobs, tokens.idsFrom(from.tokens)) }),
    e2e_latency: (performance.now() - generation.startedAt) / 1_000,
  };
}

function entriesOf(logprobs: number[], ids: number[] = []): [number, number | null, null][] {
  return logprobs.map((logprob, index) => [logprob, ids[index] ?? null, null]);
}

function finishReasonOf({ tokens }: Generation, end: GenerationEnd): object {
  if (end.reason === 'stop') return { type: 'stop', ...(end.matched !== undefined && { matched: end.matched }) };
  if (end.reason === 'length') return { type: 'length', length: tokens.count };
  return { type: 'abort', message: end.reason === 'abort' ? end.message : end.error.message };
}
