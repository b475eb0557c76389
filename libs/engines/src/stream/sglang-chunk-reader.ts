import { BroomwagonError } from '@broomwagon/contracts';
import { toErrorCode } from '../http/answer-status';
import { quote } from '../http/refusal';
import { toFinishReason, unknownFields, type ChunkReader, type StreamStep } from './chunk-reader';
import { ChunkText, type TextForm } from './chunk-text';
import { newEntries, newTokenIds, type LogprobEntry } from './chunk-tokens';
import {
  INTEGER,
  LIST,
  RepeatedEvent,
  STRING,
  parseString,
  type VaryingField,
  parseWholeNumber,
} from './repeated-event';

/** Fields that are read here, or that do not describe the response. */
const CHUNK_FIELDS = new Set(['text', 'output_ids', 'meta_info', 'index', 'error']);
// prettier-ignore
const META_FIELDS = new Set([
  'id', 'finish_reason', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'output_token_logprobs',
  'e2e_latency', 'output_token_logprobs_length', 'output_token_logprobs_idx',
]);
/** Lists with an entry for each token: chunks that hold only new text may have only the new entries. */
const TOKEN_FIELDS = ['output_top_logprobs', 'output_token_ids_logprobs'];

/** Fields that differ from chunk to chunk of a response that has not ended. */
const VARYING: readonly VaryingField[] = [
  { path: ['text'], form: STRING },
  { path: ['output_ids'], form: LIST },
  { path: ['meta_info', 'completion_tokens'], form: INTEGER },
  { path: ['meta_info', 'output_token_logprobs'], form: LIST },
];
/** Maximum chunks that are prepared for {@link SglangChunkReader.readRepeated} without a success. */
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
  text?: string | null;
  output_ids?: number[];
  meta_info?: {
    finish_reason?: FinishReason | string | null;
    prompt_tokens?: number;
    completion_tokens?: number;
    cached_tokens?: number;
    output_token_logprobs?: LogprobEntry[];
  };
}

/**
 * Reads chunks of `/generate` of SGLang. Text, ids and log probabilities have all tokens so far, or only new tokens:
 *
 * - whole texts and ids: the default
 * - whole texts, new ids: 0.5.3, and `--stream-output` until 0.5.9
 * - new texts and ids: `--incremental-streaming-output` since 0.5.10
 * - whole text, the last id, the count of all tokens: a request that was aborted while it waited
 *
 * So each of the three is read by its own form; ids that do not fit the count are refused.
 */
export class SglangChunkReader implements ChunkReader {
  /** Tokens so far. */
  private made = 0;
  private readonly text: ChunkText;
  /** Chunks have ids: no token is taken without its id. */
  private hasIds = false;
  /** Unknown fields of earlier chunks. */
  private readonly given = { fields: {}, metaFields: {} };
  /** The previous chunk, if the next chunk may repeat it. */
  private repeated: RepeatedEvent | undefined;
  private triesLeft = SPARE_TRIES;

  /**
   * @param textForm form of texts in the server info of the engine; used if a chunk does not show the form
   * @param promptTokenIds token ids of messages, reported with the first chunk
   */
  constructor(
    textForm?: TextForm,
    private promptTokenIds?: number[],
  ) {
    this.text = new ChunkText(textForm);
  }

  /** Reads chunks that hold only new tokens, and do not end the response. */
  readRepeated(json: string): StreamStep | undefined {
    const values = this.repeated?.parseValues(json);
    const increment = values && parseIncrement(values, this.made);
    if (increment === undefined) return undefined;
    this.made += increment.tokenCount;
    this.text.append(increment.text);
    this.triesLeft = SPARE_TRIES;
    return { increment };
  }

  read(event: Record<string, unknown>, json?: string): StreamStep {
    const chunk = event as SglangChunk;
    const { meta_info: meta } = chunk;
    if (typeof meta !== 'object' || meta === null) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `The engine sent an event without meta_info: ${quote(json ?? '')}`);
    }
    const step = this.ending(meta);
    const before = this.made;
    const ids = chunk.output_ids ?? [];
    const entries = meta.output_token_logprobs;
    this.hasIds ||= ids.length > 0;
    // The counts of an abort in older versions begin again at 0, or are missing.
    const counted = meta.completion_tokens ?? (step.finishReason === 'aborted' ? before : before + ids.length);
    const total = step.finishReason === 'aborted' ? Math.max(counted, before) : counted;
    const counts = { before, total };
    const tokenCount = total - before;
    // The request was aborted while it waited: every chunk of a running request has the count of its prompt.
    const isWholeAbort = step.finishReason === 'aborted' && !meta.prompt_tokens;
    const tokenIds = tokenCount === 0 ? [] : this.hasIds ? newTokenIds(ids, entries, counts) : undefined;
    const hasAllIds = ids.length === total && before > 0;
    const isWholeList = hasAllIds && total > before;
    const hasTooManyIds = ids.length > total;
    if (tokenCount < 0 || hasTooManyIds || (tokenCount > 0 && this.hasIds && tokenIds === undefined)) {
      return refuse(
        step,
        tokenCount,
        `The engine counts ${total} tokens after ${before} and sent ${ids.length} token ids`,
      );
    }
    // The chunk of an abort may have all ids and all text again, without a new token.
    const isRepeated = hasAllIds && step.finishReason === 'aborted';
    const textForm = isWholeAbort || isWholeList || isRepeated ? 'whole' : undefined;
    const text = this.text.next(chunk.text ?? '', { form: textForm, isLast: step.finishReason !== undefined });
    this.made = total;

    const added = tokenCount === 0 ? undefined : newEntries(entries, counts);
    // If the entries do not fit the count, the new tokens have no log probabilities.
    const logprobs = entries && Array.from({ length: tokenCount }, (_, index) => added?.[index]?.[0] ?? null);
    // Entries have texts only with `return_text_in_logprobs`.
    const tokens = added?.flatMap(([, , token]) => token ?? []);
    const choice = tokens !== undefined && tokens.length > 0 ? { logprobs: { tokens } } : undefined;
    const { promptTokenIds } = this;
    step.increment = {
      text,
      tokenCount,
      tokenIds: this.hasIds ? tokenIds : undefined,
      logprobs,
      choice,
      promptTokenIds,
    };
    this.promptTokenIds = undefined;
    const fields = unknownFields(event, CHUNK_FIELDS, this.given.fields);
    const metaFields = unknownFields(meta, META_FIELDS, this.given.metaFields);
    const pieces = isWholeList ? undefined : takePieces(metaFields, total);
    if (fields || metaFields) step.engineFields = { whole: { ...fields, ...metaFields }, pieces };
    // Entries of new tokens may be equal to earlier entries: a chunk with such entries is not a repeated chunk.
    const isRunning = step.finishReason === undefined && chunk.output_ids !== undefined && pieces === undefined;
    const isRepeatable = this.text.isNew && !isWholeList && total > 0 && isRunning;
    this.repeated = isRepeatable && json !== undefined ? this.createRepeated(json) : undefined;
    return step;
  }

  /** Prepares a chunk for repeats. Chunks that differ in other fields too are not prepared again and again. */
  private createRepeated(json: string): RepeatedEvent | undefined {
    if (this.triesLeft === 0) return undefined;
    this.triesLeft -= 1;
    return RepeatedEvent.of(json, VARYING);
  }

  private ending(meta: NonNullable<SglangChunk['meta_info']>): StreamStep {
    const { finish_reason: reason, prompt_tokens: promptTokens, cached_tokens: cachedTokens } = meta;
    const completionTokens = meta.completion_tokens ?? this.made;
    const usage =
      promptTokens === undefined
        ? undefined
        : { promptTokens, completionTokens, ...(cachedTokens && { cachedTokens }) };
    // Readers of a stream get the size of the prompt with the first tokens.
    if (!reason) return this.made === 0 ? { usage } : {};
    const given: FinishReason = typeof reason === 'string' ? { type: reason } : reason;
    const { type, matched, message, status_code: status } = given;
    if (type === 'abort' && status !== undefined && status !== null) throw toFailure(Number(status), message);
    return { finishReason: toFinishReason(type), engineFinishReason: type, stopReason: matched ?? message, usage };
  }
}

/**
 * Drops the tokens of a chunk that ends an aborted request: these tokens are generated again. Any other chunk is an
 * error.
 */
function refuse(step: StreamStep, lostTokens: number, reason: string): StreamStep {
  if (step.finishReason !== 'aborted') throw new BroomwagonError('ENGINE_PROTOCOL', reason);
  return {
    ...step,
    lostTokens,
    stopReason: `${step.stopReason ?? 'Aborted on the engine'}. ${reason}: the last tokens are lost`,
  };
}

/**
 * Takes the lists that have only entries of new tokens out of the fields; other lists have an entry for each of `total`
 * tokens.
 */
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

/** Error for an abort that SGLang reports with a status: no request of a client has caused it. */
function toFailure(status: number, message = ''): BroomwagonError {
  const said = quote(message);
  return new BroomwagonError(toErrorCode(status), `The engine ended the stream with status ${status}: ${said}`, {
    details: { status, said },
  });
}

/** Tokens of a chunk that follow `before` tokens; undefined if the chunk must be parsed. */
function parseIncrement(values: readonly string[], before: number) {
  const [textJson, idsJson, totalJson, entriesJson] = values;
  if (textJson === undefined || idsJson === undefined || totalJson === undefined) return undefined;
  try {
    const text = parseString(textJson);
    const total = parseWholeNumber(totalJson);
    const tokenIds = parseIds(idsJson);
    const tokenCount = tokenIds.length;
    const logprobs = entriesJson === undefined ? undefined : parseLogprobs(entriesJson, tokenIds);
    if (typeof text !== 'string' || tokenCount === 0 || before + tokenCount !== total) return undefined;
    if (entriesJson !== undefined && logprobs?.length !== tokenCount) return undefined;
    return { text, tokenCount, tokenIds, logprobs };
  } catch {
    return undefined;
  }
}

function parseIds(json: string): number[] {
  const only = json.startsWith('[') && json.endsWith(']') ? parseWholeNumber(json.slice(1, -1)) : undefined;
  return only === undefined ? (JSON.parse(json) as number[]) : [only];
}

/** Log probabilities of entries; undefined if the entries have texts. */
function parseLogprobs(json: string, [tokenId]: number[]): (number | null)[] | undefined {
  const end = `,${tokenId},null]]`;
  if (json.startsWith('[[') && json.endsWith(end)) {
    const only = json.slice(2, -end.length);
    if (NUMBER.test(only)) return [Number(only)];
  }
  const entries = JSON.parse(json) as [number | null, number, string | null][];
  return entries.some(([, , token]) => token !== null) ? undefined : entries.map(([logprob]) => logprob);
}
