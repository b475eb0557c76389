import { BroomwagonError } from '@broomwagon/contracts';
import { isRefusal, quote } from '../http/engine-http';
import { finishReasonOf, unknownFields, type ChunkReader, type StreamStep } from './chunk-reader';
import { INTEGER, LIST, RepeatedEvent, STRING, stringOf, type VaryingField, wholeNumberOf } from './repeated-event';

/** Fields that are read here, or that do not describe the response. */
const CHUNK_FIELDS = new Set(['text', 'output_ids', 'meta_info', 'index', 'error']);
// prettier-ignore
const META_FIELDS = new Set([
  'id', 'finish_reason', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'output_token_logprobs',
  'e2e_latency', 'output_token_logprobs_length', 'output_token_logprobs_idx',
]);
/** Lists with an entry for each token: chunks that hold only what is new may have only the new entries. */
const TOKEN_FIELDS = ['output_top_logprobs', 'output_token_ids_logprobs'];

/** What differs from chunk to chunk of a response that has not ended. */
const VARYING: readonly VaryingField[] = [
  { path: ['text'], form: STRING },
  { path: ['output_ids'], form: LIST },
  { path: ['meta_info', 'completion_tokens'], form: INTEGER },
  { path: ['meta_info', 'output_token_logprobs'], form: LIST },
];
/** Chunks that may be prepared for {@link SglangChunkReader.readRepeated}, beside one for each that was read so. */
const SPARE_TRIES = 4;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?$/;

interface FinishReason {
  type: string;
  matched?: string | number;
  message?: string;
  /** HTTP status of an `abort` by which the engine reports a failure or a refusal of its own. */
  status_code?: number | string | null;
}

interface SglangChunk {
  text?: string;
  output_ids?: number[];
  meta_info?: {
    finish_reason?: FinishReason | string | null;
    prompt_tokens?: number;
    completion_tokens?: number;
    cached_tokens?: number;
    /** [logprob, token id, text or null] */
    output_token_logprobs?: [number | null, number, string | null][];
  };
}

/**
 * Chunks of SGLang's `/generate`. They repeat all that was made so far (the default) or hold only what is new
 * (`--incremental-streaming-output`, formerly `--stream-output`); the counts of each chunk tell which.
 */
export class SglangChunkReader implements ChunkReader {
  private made = 0;
  private text = '';
  private logprobs = 0;
  /** Unknown fields of earlier chunks. */
  private readonly given = { fields: {}, metaFields: {} };
  /** The chunk before, if the next one may repeat it. */
  private repeated: RepeatedEvent | undefined;
  private triesLeft = SPARE_TRIES;

  /**
   * @param incremental as the server info of the engine reports it; used where a chunk does not show it
   * @param promptTokenIds those of messages, reported with the first chunk
   */
  constructor(
    private readonly incremental = false,
    private promptTokenIds?: number[],
  ) {}

  /** Reads chunks that hold only what is new, and do not end the response. */
  readRepeated(json: string): StreamStep | undefined {
    const values = this.repeated?.valuesOf(json);
    const increment = values && incrementOf(values);
    if (increment === undefined || this.made + increment.tokenCount !== increment.total) return undefined;
    const { text, tokenCount, tokenIds, logprobs } = increment;
    this.made += tokenCount;
    this.logprobs += logprobs?.length ?? 0;
    this.triesLeft = SPARE_TRIES;
    return { increment: { text, tokenCount, tokenIds, logprobs } };
  }

  read(event: Record<string, unknown>, json?: string): StreamStep {
    const chunk = event as SglangChunk;
    const meta = chunk.meta_info ?? {};
    const total = meta.completion_tokens ?? this.made + (chunk.output_ids?.length ?? 0);
    const cumulative = this.isCumulative(chunk.output_ids, total);

    const said = chunk.text ?? '';
    const text = cumulative ? said.slice(this.text.length) : said;
    const tokenIds = cumulative ? chunk.output_ids?.slice(this.made) : chunk.output_ids;
    const entries = meta.output_token_logprobs;
    // Some versions repeat the logprobs of all tokens even when the tokens themselves are incremental.
    const added = entries?.slice(entries.length === total ? this.logprobs : 0);
    const logprobs = added?.map(([logprob]) => logprob);
    // With return_text_in_logprobs.
    const tokens = added?.flatMap(([, , token]) => token ?? []);

    const tokenCount = Math.max(0, total - this.made);
    this.made = Math.max(this.made, total);
    if (cumulative) this.text = said;
    this.logprobs += logprobs?.length ?? 0;
    const step = this.ending(meta);
    const choice = tokens !== undefined && tokens.length > 0 ? { logprobs: { tokens } } : undefined;
    const { promptTokenIds } = this;
    step.increment = { text, tokenCount, tokenIds, logprobs, choice, promptTokenIds };
    this.promptTokenIds = undefined;
    const fields = unknownFields(event, CHUNK_FIELDS, this.given.fields);
    const metaFields = unknownFields(meta, META_FIELDS, this.given.metaFields);
    const pieces = cumulative ? undefined : takePieces(metaFields, total);
    if (fields || metaFields) step.engineFields = { whole: { ...fields, ...metaFields }, pieces };
    // Entries of new tokens may be equal to those before: a chunk that has some is not a repeated one.
    const isRunning = step.finishReason === undefined && tokenIds !== undefined && pieces === undefined;
    const isRepeatable = !cumulative && this.made > 0 && isRunning;
    this.repeated = isRepeatable && json !== undefined ? this.repeatedOf(json) : undefined;
    return step;
  }

  /** Events that differ in other fields too are not prepared again and again. */
  private repeatedOf(json: string): RepeatedEvent | undefined {
    if (this.triesLeft === 0) return undefined;
    this.triesLeft -= 1;
    return RepeatedEvent.of(json, VARYING);
  }

  private isCumulative(outputIds: number[] | undefined, total: number): boolean {
    if (outputIds && this.made > 0) {
      if (outputIds.length === total) return true;
      if (outputIds.length === total - this.made) return false;
    }
    return !this.incremental;
  }

  private ending(meta: NonNullable<SglangChunk['meta_info']>): StreamStep {
    const reason = meta.finish_reason;
    if (!reason) return {};
    const said: FinishReason = typeof reason === 'string' ? { type: reason } : reason;
    const { type, matched, message, status_code: status } = said;
    if (type === 'abort' && status !== undefined && status !== null) throw failureOf(Number(status), message);
    return {
      finishReason: finishReasonOf(type),
      stopReason: matched ?? message,
      usage: {
        promptTokens: meta.prompt_tokens ?? 0,
        completionTokens: meta.completion_tokens ?? this.made,
        ...(meta.cached_tokens && { cachedTokens: meta.cached_tokens }),
      },
    };
  }
}

/** Takes the lists with entries of new tokens only out of the fields; others have one for each of `total` tokens. */
function takePieces(fields: Record<string, unknown> | undefined, total: number): Record<string, unknown> | undefined {
  let pieces: Record<string, unknown> | undefined;
  for (const name of TOKEN_FIELDS) {
    const list = fields?.[name];
    if (!Array.isArray(list) || list.length === total) continue;
    (pieces ??= {})[name] = list;
    delete fields![name];
  }
  return pieces;
}

/** What SGLang reports as an abort with a status: no request of a client has caused it. */
function failureOf(status: number, message = ''): BroomwagonError {
  const code = isRefusal(status) ? 'ENGINE_REJECTED' : 'ENGINE_ERROR';
  const said = quote(message);
  return new BroomwagonError(code, `The engine ended the stream with status ${status}: ${said}`, {
    details: { status, said },
  });
}

/** Undefined: the chunk has to be parsed. */
function incrementOf(values: readonly string[]) {
  const [textJson, idsJson, totalJson, entriesJson] = values;
  if (textJson === undefined || idsJson === undefined || totalJson === undefined) return undefined;
  try {
    const text = stringOf(textJson);
    const total = wholeNumberOf(totalJson);
    const tokenIds = idsOf(idsJson);
    const tokenCount = tokenIds.length;
    const logprobs = entriesJson === undefined ? undefined : logprobsOf(entriesJson, tokenIds);
    if (typeof text !== 'string' || tokenCount === 0) return undefined;
    if (entriesJson !== undefined && logprobs?.length !== tokenCount) return undefined;
    return { text, total, tokenIds, tokenCount, logprobs };
  } catch {
    return undefined;
  }
}

function idsOf(json: string): number[] {
  const only = json.startsWith('[') && json.endsWith(']') ? wholeNumberOf(json.slice(1, -1)) : undefined;
  return only === undefined ? (JSON.parse(json) as number[]) : [only];
}

/** Undefined: with the texts of tokens. */
function logprobsOf(json: string, [tokenId]: number[]): (number | null)[] | undefined {
  const end = `,${tokenId},null]]`;
  if (json.startsWith('[[') && json.endsWith(end)) {
    const only = json.slice(2, -end.length);
    if (NUMBER.test(only)) return [Number(only)];
  }
  const entries = JSON.parse(json) as [number | null, number, string | null][];
  return entries.some(([, , token]) => token !== null) ? undefined : entries.map(([logprob]) => logprob);
}
