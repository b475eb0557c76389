import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { estimateUnsent } from '@broomwagon/policies';
import type { EngineAdapterOptions, GenerateOptions, GenerationResult } from '../engine-adapter';
import { toErrorCode } from '../http/answer-status';
import { parseObject, type EngineHttp } from '../http/engine-http';
import { isContextTooLong, quote } from '../http/refusal';
import { AttemptTokens } from './attempt-tokens';
import { ChunkBatch, type Urgency } from './chunk-batch';
import type { ChunkReader } from './chunk-reader';
import { EventStreamParser } from './event-stream';
import type { IncludedStop } from './included-stop';
import { OpaqueField } from './opaque-field';
import { PaceMeter, type EngineMemory } from './pace-meter';
import { RequestedEnd } from './requested-end';
import { SilenceWatch } from './silence-watch';

export const DEFAULT_FIRST_TOKEN_TIMEOUT_MS = 30 * 60_000;
export const DEFAULT_STALL_TIMEOUT_MS = 120_000;
export const DEFAULT_MAX_LINE_BYTES = 1_048_576;
/** Age of a response after which its end may be found 200 ms late, milliseconds. */
const LONG_MS = 10_000;

export interface StreamCall {
  path: string;
  body: unknown;
  headers: Record<string, string>;
  reader: ChunkReader;
  /** Leaves out what nobody reads of an event, before it is parsed. */
  shorten?: (event: string) => string;
  resumedBy?: GenerationResult['resumedBy'];
  /** Set if the engine was asked to send the stop text that ends the response. */
  stop?: IncludedStop;
  /**
   * Stops the request on the engine by its id. False if the engine has no such route, undefined if the call failed;
   * must not throw.
   */
  abortById: () => Promise<boolean | undefined>;
  memory: EngineMemory;
  /** Tokens of one event that the body asks for; default 1. */
  interval?: number;
  /** Reads the engine's own count of tokens; undefined: it has none. Must not throw. */
  countEngineTokens?: () => Promise<number | undefined>;
}

/**
 * Runs one streaming call to its end: bytes -> events -> tokens. Ends in exactly one of three ways:
 *
 * - a result with the finish reason of the engine
 * - a result `aborted`: the signal of the caller fired, or the engine sent tokens and `[DONE]` without a reason
 * - an error of Broomwagon, also if a stream ends otherwise
 *
 * At the end the body is consumed or destroyed. An engine that may still run the request gets one abort.
 */
export async function streamGeneration(
  http: Pick<EngineHttp, 'baseUrl' | 'stream' | 'receive' | 'transportError'>,
  call: StreamCall,
  options: EngineAdapterOptions,
  { signal, onTokens, keepsTokens, readsAtOnce, onUnstopped, onLost, opaqueField }: GenerateOptions,
): Promise<GenerationResult> {
  const tokens = new AttemptTokens(onTokens, keepsTokens, call.stop);
  if (signal?.aborted) return tokens.result('aborted', call.resumedBy);

  const parser = new EventStreamParser(options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES);
  const { reader } = call;
  const opaque = opaqueField === undefined ? undefined : new OpaqueField(opaqueField);
  const isCollected = (call.interval ?? 1) > 1;
  const meter = new PaceMeter(call.memory, call.interval);
  let isDone = false;
  let isReading = false;
  const read = (bytes: Buffer): void => {
    isReading = true;
    const before = tokens.count;
    for (const data of parser.push(opaque?.take(bytes) ?? bytes)) {
      if (data === '[DONE]') {
        isDone = true;
        continue;
      }
      const step = reader.readRepeated?.(data) ?? reader.read(eventObject(http, call.shorten?.(data) ?? data), data);
      opaque?.restore(step);
      silence.heard(tokens.take(step));
    }
    isReading = false;
    if (tokens.count > before) meter.note(tokens.count, tokens.largest);
  };
  const beganAt = performance.now();
  const urgency = (): Urgency => {
    if (tokens.isEmpty || signal?.aborted || readsAtOnce?.()) return 'urgent';
    // Events of several tokens are rare, so a connection that waits would collect none.
    return !isCollected && performance.now() - beganAt > LONG_MS ? 'long' : 'usual';
  };
  const stream = http.stream((chunk) => batch.add(chunk, urgency()));
  const stop = (reason: unknown): void => stream.abort(reason);
  const batch = new ChunkBatch(read, stop, () => stream.resume());
  const abortById = async (): Promise<void> => {
    if ((await call.abortById()) === undefined) onUnstopped?.();
  };
  const requestedEnd = new RequestedEnd({
    stream,
    abortById: call.abortById,
    memory: call.memory,
    countTokens: () => tokens.count,
    reason: () => signal?.reason,
    timeoutMs: options.endTimeoutMs,
  });
  const onAbort = (): void => {
    // A stop that comes from `onTokens` must not read later chunks before the rest of this chunk.
    if (!isReading) batch.flushLate();
    requestedEnd.begin();
  };
  signal?.addEventListener('abort', onAbort);
  const silence = new SilenceWatch(
    {
      firstTokenTimeoutMs: options.firstTokenTimeoutMs ?? DEFAULT_FIRST_TOKEN_TIMEOUT_MS,
      stallTimeoutMs: options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
      isPaused: options.isPaused,
      countEngineTokens: call.countEngineTokens,
      pace: () => meter.pace,
    },
    stop,
  );
  /** @param isWhole the engine has ended the stream */
  const reportLost = (isWhole: boolean): void => {
    const isBroken = !isWhole && stream.isOpen && !tokens.isEmpty;
    const lost = Math.max(tokens.missing, isBroken ? estimateUnsent(meter.pace, meter.silentMs) : 0);
    if (lost > 0) onLost?.(lost);
  };
  const endWhole = (): GenerationResult => {
    const { finishReason = 'aborted' } = tokens;
    if (finishReason === 'aborted') reportLost(true);
    return tokens.result(finishReason, call.resumedBy);
  };
  try {
    try {
      await http.receive(stream, call.path, call.body, call.headers, isCollected);
    } finally {
      // Chunks that have arrived are read first: they may have the error because of which the engine closed the
      // connection.
      batch.flush();
    }
    if (tokens.finishReason === undefined && !isDone) {
      throw new BroomwagonError('ENGINE_ERROR', `${http.baseUrl} ended the stream without [DONE] or a finish reason`);
    }
    // Engines may report a failure before the first token only by such an end (vllm#40978).
    if (tokens.finishReason === undefined && tokens.isEmpty && !signal?.aborted) {
      throw new BroomwagonError('ENGINE_ERROR', `${http.baseUrl} ended the stream without a token or a finish reason`);
    }
    // vLLM ends the stream of a request that was aborted on it with [DONE] and without a reason.
    if (tokens.finishReason === undefined && !requestedEnd.isConfirmed) await abortById();
    return endWhole();
  } catch (error) {
    // The engine has reported the end; a later error changes nothing.
    if (tokens.finishReason !== undefined) return endWhole();
    const failure = silence.error ?? http.transportError(error);
    // An engine that refused, or was not reached, has not started the request.
    const isBroken = !isBroomwagonError(error) && failure.code !== 'ENGINE_UNREACHABLE';
    const isSilent = silence.error !== undefined;
    const mayBeAtWork = stream.isOpen || signal?.aborted || isSilent || isBroken || failure.code === 'ENGINE_PROTOCOL';
    if (mayBeAtWork) await abortById();
    reportLost(false);
    if (signal?.aborted) return tokens.result('aborted', call.resumedBy);
    throw failure;
  } finally {
    meter.end();
    silence.stop();
    requestedEnd.clear();
    signal?.removeEventListener('abort', onAbort);
  }
}

function eventObject(http: Pick<EngineHttp, 'baseUrl'>, data: string): Record<string, unknown> {
  const event = parseObject(data);
  if (!event || Array.isArray(event)) {
    throw new BroomwagonError('ENGINE_PROTOCOL', `${http.baseUrl} sent an event that is not an object: ${quote(data)}`);
  }
  const isChunk = event.choices !== undefined || event.meta_info !== undefined;
  const isReport = !isChunk && (typeof event.message === 'string' || typeof event.detail === 'string');
  const failure = event.error ?? (event.object === 'error' || isReport ? event : undefined);
  if (failure === undefined || failure === null) return event;
  throw toFailure(http.baseUrl, failure);
}

/** Broomwagon's error for an error that an engine sends in a stream, after status 200. */
function toFailure(baseUrl: string, failure: unknown): BroomwagonError {
  const { message, detail, code } = (typeof failure === 'object' ? failure : {}) as Record<string, unknown>;
  const said = String(message ?? detail ?? (typeof failure === 'string' ? failure : JSON.stringify(failure)));
  const status = Number.isInteger(Number(code ?? undefined)) ? Number(code) : undefined;
  // The error of a stream of SGLang has no code.
  const errorCode = isContextTooLong(said) ? 'ENGINE_REJECTED' : toErrorCode(status ?? NaN);
  const numbered = status === undefined ? '' : ` (${status})`;
  return new BroomwagonError(errorCode, `${baseUrl} sent an error in the stream${numbered}: ${quote(said)}`, {
    details: { status, said },
  });
}
