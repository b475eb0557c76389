import { BroomwagonError } from '@broomwagon/contracts';
import type { GenerationResult, TokenIncrement } from '../engine-adapter';

/** The contents of one event of a stream. */
export interface StreamStep {
  increment?: TokenIncrement;
  finishReason?: GenerationResult['finishReason'];
  stopReason?: string | number;
  /** The finish reason as the engine named it. */
  engineFinishReason?: string;
  usage?: GenerationResult['usage'];
  /** Tokens of a chunk that was dropped: the chunk of an abort that contradicts the chunks before. */
  lostTokens?: number;
  /**
   * Fields that Broomwagon does not read (`routed_experts`, `tool_calls`), for {@link mergeEngineFields}: `whole`
   * replaces the values of earlier steps, `pieces` are appended to them.
   */
  engineFields?: { whole?: Record<string, unknown>; pieces?: Record<string, unknown> };
}

/**
 * The fields of `from` that are not `known` and not empty; undefined without such fields.
 * @param given fields returned before: fields with the same value are left out
 */
export function unknownFields(
  from: object | undefined,
  known: ReadonlySet<string>,
  given?: Record<string, unknown>,
): Record<string, unknown> | undefined {
  let found: Record<string, unknown> | undefined;
  for (const name in from) {
    if (known.has(name)) continue;
    const value = from[name as keyof typeof from] as unknown;
    if (value === null || value === undefined || given?.[name] === value) continue;
    (found ??= {})[name] = value;
    if (given) given[name] = value;
  }
  return found;
}

/** Adds a step's fields: texts and lists among the pieces are joined, other values replace earlier ones. */
export function mergeEngineFields(
  into: Record<string, unknown>,
  { whole, pieces }: NonNullable<StreamStep['engineFields']>,
): void {
  Object.assign(into, whole);
  for (const [name, piece] of Object.entries(pieces ?? {})) {
    const before = into[name];
    if (typeof before === 'string' && typeof piece === 'string') into[name] = before + piece;
    else if (Array.isArray(before) && Array.isArray(piece)) before.push(...(piece as unknown[]));
    else into[name] = Array.isArray(piece) ? [...(piece as unknown[])] : piece;
  }
}

/** Reads the events of one stream of one dialect, in order; may keep state between events. */
export interface ChunkReader {
  /** @param text text of the event, if events that repeat it may be read by {@link readRepeated} */
  read(event: Record<string, unknown>, text?: string): StreamStep;
  /** Reads an event that is like the event before, without parsing all of it; undefined: the event must be parsed. */
  readRepeated?(text: string): StreamStep | undefined;
}

/**
 * Maps the finish reasons of all dialects; a reason that Broomwagon does not have (tool_calls, content_filter, ...)
 * counts as `stop`. ENGINE_ERROR for `error`: vLLM ends a stream with this reason after a failure.
 */
export function toFinishReason(said: string): GenerationResult['finishReason'] {
  if (said === 'length') return 'length';
  if (said === 'abort' || said === 'aborted' || said === 'cancelled') return 'aborted';
  if (said === 'error') throw new BroomwagonError('ENGINE_ERROR', 'The engine ended the stream with an error');
  return 'stop';
}
