import type { Generation } from '../../core/generation';
import type { GenerationEnd } from '../../core/response-parts';
import type { Position } from '../../answers/format';

/** An answer of `/generate`, or a chunk of its stream, with the tokens after `from`. */
export function buildReply(generation: Generation, from: Position): object {
  const { tokens } = generation;
  const ids = tokens.idsFrom(from.tokens);
  const text = tokens.textFrom(from.characters);
  const meta = buildMeta(generation, from);
  return ids === undefined ? { text, meta_info: meta } : { text, output_ids: ids, meta_info: meta };
}

/** Writes chunks like {@link buildReply} until the response has ended; rarely changing parts are kept as text. */
export function runningReply(generation: Generation, index?: number): (from: Position) => string {
  const { tokens, input, report } = generation;
  const end = index === undefined ? '' : `,"index":${index}`;
  let description = -1;
  let meta = '';
  return (from) => {
    if (description !== report.changes) {
      description = report.changes;
      meta = JSON.stringify(describe(generation)).slice(1, -1);
    }
    const ids = tokens.idsFrom(from.tokens);
    const logprobs = input.sampling.logprobs ? tokens.logprobsFrom(from.tokens) : undefined;
    const entries = logprobs && `,"output_token_logprobs":${JSON.stringify(toLogprobEntries(logprobs, ids))}`;
    const idList = ids && `,"output_ids":[${ids.join(',')}]`;
    const text = JSON.stringify(tokens.textFrom(from.characters));
    const counted = `,"completion_tokens":${tokens.count}`;
    return `{"text":${text}${idList ?? ''},"meta_info":{${meta}${counted}${entries ?? ''}}${end}}`;
  };
}

function buildMeta(generation: Generation, from: Position): object {
  const { tokens, input, end } = generation;
  const logprobs = input.sampling.logprobs ? tokens.logprobsFrom(from.tokens) : undefined;
  return Object.assign(
    describe(generation),
    { completion_tokens: tokens.count },
    logprobs && { output_token_logprobs: toLogprobEntries(logprobs, tokens.idsFrom(from.tokens)) },
    end && { e2e_latency: (performance.now() - generation.calls.startedAt) / 1_000 },
  );
}

/** The part of `meta_info` that changes only between calls of engines, and at the end. */
function describe(generation: Generation): object {
  const { input, report, end } = generation;
  const { spans } = report;
  const version = spans.at(-1)?.version;
  return Object.assign(
    {},
    report.fields,
    {
      id: generation.id,
      finish_reason: end === undefined ? null : toFinishReason(generation, end),
      prompt_tokens: report.promptTokens ?? input.prompt.promptTokenIds?.length ?? 0,
      cached_tokens: report.cachedTokens ?? 0,
    },
    version !== undefined && { weight_version: version, weight_versions: spans },
  );
}

function toLogprobEntries(logprobs: number[], ids: number[] = []): [number, number | null, null][] {
  return logprobs.map((logprob, index) => [logprob, ids[index] ?? null, null]);
}

function toFinishReason({ tokens }: Generation, end: GenerationEnd): object {
  if (end.reason === 'stop') return { type: 'stop', ...(end.matched !== undefined && { matched: end.matched }) };
  if (end.reason === 'length') return { type: 'length', length: tokens.count };
  return { type: 'abort', message: end.reason === 'abort' ? end.message : end.error.message };
}
