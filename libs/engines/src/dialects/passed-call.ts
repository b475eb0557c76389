import { BroomwagonError, type EngineDialect } from '@broomwagon/contracts';
import type { EngineAdapterOptions, PassedAnswer, PassedRequest, PassOptions } from '../engine-adapter';
import { toErrorCode } from '../http/answer-status';
import { type EngineHttp } from '../http/engine-http';
import { toRefusalError } from '../http/refusal';
import { SilenceWatch } from '../stream/silence-watch';
import { DEFAULT_FIRST_TOKEN_TIMEOUT_MS, DEFAULT_STALL_TIMEOUT_MS } from '../stream/stream-generation';
import { saltedFields } from './cache-salt';
import { NO_ROUTE, ROUTE_DISABLED } from './engine-routes';
import { refuseForeignFields, REQUEST_FIELDS } from './request-fields';

/** Field with the id of a request. */
const ID_FIELDS: Partial<Record<EngineDialect, string>> = { vllm: 'request_id', sglang: 'rid' };
/** Largest answer, bytes. */
const MAX_ANSWER_BYTES = 256 * 1_048_576;

type Http = Pick<EngineHttp, 'baseUrl' | 'open' | 'transportError'>;

/**
 * Makes a call with the fields of the caller, and returns the answer as it is. A whole answer has the deadline of the
 * first token; a stream has the deadlines of any stream.
 * @param abortById stops the request on the engine; undefined: the call has failed
 * @throws BroomwagonError as {@link EngineAdapter.pass}; ENGINE_REJECTED with the field if there is no route
 */
export async function passCall(
  http: Http,
  dialect: EngineDialect,
  request: PassedRequest,
  { firstTokenTimeoutMs, stallTimeoutMs, isPaused }: EngineAdapterOptions,
  { signal, onPiece, onUnstopped }: PassOptions,
  abortById: () => Promise<boolean | undefined>,
): Promise<PassedAnswer> {
  // The id of this call replaces the id of the caller, in the field of the dialect.
  const { request_id: _id, rid: _rid, ...body } = request.body;
  const routes = REQUEST_FIELDS[dialect];
  if (routes !== undefined && !request.paths.some((path) => Object.hasOwn(routes, path)))
    throw noRoute(dialect, request);
  refuseForeignFields(dialect, body);
  const stopping = new AbortController();
  const onAbort = (): void => stopping.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  if (signal?.aborted) onAbort();
  const silence = new SilenceWatch(
    {
      firstTokenTimeoutMs: firstTokenTimeoutMs ?? DEFAULT_FIRST_TOKEN_TIMEOUT_MS,
      stallTimeoutMs: stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
      isPaused,
      // The tokens of the pieces are not known.
      pace: () => ({ interval: 1 }),
    },
    (error) => stopping.abort(error),
  );
  const read = (piece: Buffer, contentType: string): void => {
    silence.heard(true);
    if (contentType.startsWith('text/event-stream')) onPiece?.(piece, contentType);
  };
  try {
    return await askRoutes(http, dialect, { ...request, body }, stopping.signal, read);
  } catch (error) {
    const failure = silence.error ?? http.transportError(error);
    const mayBeAtWork = failure.code !== 'ENGINE_UNREACHABLE' && failure.code !== 'ENGINE_REJECTED';
    if ((mayBeAtWork || signal?.aborted) && (await abortById()) === undefined) onUnstopped?.();
    throw failure;
  } finally {
    silence.stop();
    // Closes the connection of an answer that was not read to its end.
    stopping.abort();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The answer of the first route that the engine has. */
async function askRoutes(
  http: Http,
  dialect: EngineDialect,
  request: PassedRequest,
  signal: AbortSignal,
  read: (piece: Buffer, contentType: string) => void,
): Promise<PassedAnswer> {
  const { engineRequestId, paths, body } = request;
  const headers = { ...request.headers, 'x-request-id': engineRequestId };
  const id = ID_FIELDS[dialect];
  const named = id === undefined ? body : { ...body, [id]: engineRequestId };
  let disabled: BroomwagonError | undefined;
  for (const path of paths) {
    const saltField = path === '/generate' ? 'extra_key' : 'cache_salt';
    const takesSalt = REQUEST_FIELDS[dialect]?.[path]?.includes(saltField) === true;
    const sent = takesSalt ? { ...named, ...saltedFields(saltField, request.cacheSalt, body) } : named;
    const opened = await http.open(path, sent, headers, signal);
    const { status, contentType, contentEncoding, pieces } = opened;
    if (contentEncoding !== 'identity') throw toRefusalError(http.baseUrl + path, { ...opened, refusalText: '' });
    const all: Buffer[] = [];
    let bytes = 0;
    for await (const piece of pieces) {
      all.push(piece);
      bytes += piece.length;
      if (bytes > MAX_ANSWER_BYTES) throw tooLarge(http.baseUrl + path);
      if (status === 200) read(piece, contentType);
    }
    const answer = { status, contentType, body: Buffer.concat(all) };
    if (status === 200) return answer;
    const refusalText = answer.body.toString('utf8');
    // Engines also answer 404 for a model that they do not have.
    const isAboutModel = status === 404 && /\bmodel\b/i.test(refusalText);
    if (NO_ROUTE.has(status) && !isAboutModel) continue;
    if ((isAboutModel && body.model !== undefined) || toErrorCode(status) === 'ENGINE_REJECTED') return answer;
    const refusal = toRefusalError(http.baseUrl + path, { ...opened, refusalText });
    if (status !== ROUTE_DISABLED) throw refusal;
    disabled ??= refusal;
  }
  throw disabled ?? noRoute(dialect, request);
}

function noRoute(dialect: EngineDialect, { paths, reason }: PassedRequest): BroomwagonError {
  const message = `${reason}: needs ${paths.join(' or ')} of an engine, which this one (${dialect}) does not have`;
  return new BroomwagonError('ENGINE_REJECTED', message, { field: reason });
}

function tooLarge(url: string): BroomwagonError {
  return new BroomwagonError('ENGINE_PROTOCOL', `${url} answered more than ${MAX_ANSWER_BYTES} bytes`);
}
