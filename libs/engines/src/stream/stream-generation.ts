import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import type { EngineAdapterOptions, GenerateOptions, GenerationResult } from '../engine-adapter';
import {
  isContextTooLong,
  isRefusal,
  parseObject,
  quote,
  type EngineHttp,
  type EngineResponse,
} from '../http/engine-http';
import { AttemptTokens } from './attempt-tokens';
import type { ChunkReader } from './chunk-reader';
import { EventStreamParser } from './event-stream';
import { SilenceWatch } from './silence-watch';

export const DEFAULT_FIRST_TOKEN_TIMEOUT_MS = 30 * 60_000;
export const DEFAULT_STALL_TIMEOUT_MS = 120_000;
export const DEFAULT_MAX_LINE_BYTES = 1_048_576;

/** One call of an engine that answers with a stream. */
export interface StreamCall {
  path: string;
  body: unknown;
  headers: Record<string, string>;
  reader: ChunkReader;
  resumedBy?: GenerationResult['resumedBy'];
  /** Stops the request on the engine by its id, where it has such a route. False when that failed; must not throw. */
  abortById: () => Promise<boolean>;
}

/**
 * Runs one streaming call to its end: bytes -> events -> tokens. Ends in exactly one of three ways: a result with the
 * engine's finish reason, a result `aborted` if the caller's signal fired or the engine sent `[DONE]` without a reason,
 * or an error of ours; a stream that ends with neither is an error. Then the connection is closed, and an engine that
 * may still run the request gets one abort. The body is always consumed or destroyed.
 */
export async function streamGeneration(
  http: EngineHttp,
  call: StreamCall,
  options: EngineAdapterOptions,
  { signal, onTokens, keepsTokens, onUnstopped }: GenerateOptions,
): Promise<GenerationResult> {
  const tokens = new AttemptTokens(onTokens, keepsTokens);
  if (signal?.aborted) return tokens.result('aborted', call.resumedBy);

  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const silence = new SilenceWatch(
    options.firstTokenTimeoutMs ?? DEFAULT_FIRST_TOKEN_TIMEOUT_MS,
    options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
    (error) => stop.abort(error),
    options.isPaused,
  );
  let opened = false;
  try {
    const response = await http.openStream(call.path, call.body, call.headers, stop.signal);
    opened = true;
    const parser = new EventStreamParser(options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES);
    const isDone = await readEvents(response.body, parser, (data) =>
      silence.heard(tokens.take(call.reader.read(eventObject(http, data)))),
    );
    if (tokens.finishReason === undefined && !isDone) {
      throw new BroomwagonError('ENGINE_ERROR', `${http.baseUrl} ended the stream without [DONE] or a finish reason`);
    }
    // vLLM ends the stream of a request that was aborted on it with [DONE] and without a reason.
    if (tokens.finishReason === undefined && !(await call.abortById())) onUnstopped?.();
    return tokens.result(tokens.finishReason ?? 'aborted', call.resumedBy);
  } catch (error) {
    // The engine has reported the end; a later error changes nothing.
    if (tokens.finishReason !== undefined) return tokens.result(tokens.finishReason, call.resumedBy);
    const failure = silence.error ?? http.transportError(error);
    // One that refused, or was not reached, has not begun.
    const isBroken = !isBroomwagonError(error) && failure.code !== 'ENGINE_UNREACHABLE';
    const mayBeAtWork = opened || signal?.aborted || silence.error !== undefined || isBroken;
    if (mayBeAtWork && !(await call.abortById())) onUnstopped?.();
    if (signal?.aborted) return tokens.result('aborted', call.resumedBy);
    throw failure;
  } finally {
    silence.stop();
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * Reads a body to its end, by events: an asynchronous iterator costs several microseconds for each chunk.
 * @returns true if `[DONE]` came
 */
function readEvents(
  body: EngineResponse['body'],
  parser: EventStreamParser,
  onData: (data: string) => void,
): Promise<boolean> {
  let isDone = false;
  return new Promise((resolve, reject) => {
    body.on('data', (chunk: Buffer) => {
      try {
        for (const data of parser.push(chunk)) {
          if (data === '[DONE]') isDone = true;
          else onData(data);
        }
      } catch (error) {
        reject(error);
        body.destroy();
      }
    });
    body.on('end', () => resolve(isDone));
    body.on('error', reject);
    body.on('close', () => reject(new Error('The connection was closed')));
  });
}

function eventObject(http: EngineHttp, data: string): Record<string, unknown> {
  const event = parseObject(data);
  if (!event || Array.isArray(event)) {
    throw new BroomwagonError('ENGINE_PROTOCOL', `${http.baseUrl} sent an event that is not an object: ${quote(data)}`);
  }
  const failure = event.error ?? (event.object === 'error' ? event : undefined);
  if (failure === undefined || failure === null) return event;
  const { message, code } = typeof failure === 'object' ? (failure as { message?: unknown; code?: unknown }) : {};
  const reason = String(message ?? JSON.stringify(failure));
  // The error of a stream of SGLang has no code.
  throw new BroomwagonError(
    isRefusal(Number(code)) || isContextTooLong(reason) ? 'ENGINE_REJECTED' : 'ENGINE_ERROR',
    `${http.baseUrl} sent an error in the stream: ${quote(reason)}`,
    { details: failure },
  );
}
