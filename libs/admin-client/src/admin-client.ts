import createClient, { type Client } from 'openapi-fetch';
import { AdminApiError } from './admin-api-error';
import type { components, paths } from './openapi.gen';
import { serializePath } from './path-ids';

/** The types of the bodies of the REST API, by name. */
export type Schemas = components['schemas'];
/** Calls of the REST API: `readData(client.GET('/api/v1/pools/{pool}', { params: { path: { pool } } }))`. */
export type AdminClient = Client<paths>;

export interface AdminClientOptions {
  /** Address of admin-api, without a path; in a browser, an empty text is the address of the page. */
  url: string;
  token: string;
  /** Maximum duration of a call, milliseconds; for a stream, until its reply begins. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
/** Maximum of a timer, which has 31 bits. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
/** Maximum repeats of a read that is answered 429. */
const MAX_REPEATS = 4;
/** Longest `Retry-After` that a repeat waits for, milliseconds. */
const LONGEST_PAUSE_MS = 5_000;
const STREAM_TYPES = /^(text\/event-stream|application\/x-ndjson)/;

/** Creates a client of the routes of docs/protocol/openapi.json, for Node and browsers. */
export function createAdminClient({ url, token, timeoutMs = TIMEOUT_MS }: AdminClientOptions): AdminClient {
  return createClient<paths>({
    baseUrl: url,
    headers: { Authorization: `Bearer ${token}` },
    pathSerializer: serializePath,
    fetch: (request) => send(request, timeoutMs),
  });
}

/**
 * Returns the body of a reply.
 * @throws AdminApiError for every reply without success, and if there is no reply
 */
export async function readData<Data>(
  call: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw AdminApiError.ofFailure(cause);
  });
  if (!response.ok) throw AdminApiError.ofReply(response, error);
  return data as Data;
}

/**
 * Iterates over the pages of a list.
 * @param read returns the page after a cursor, or the first page for an undefined cursor
 */
export async function* iteratePages<Page extends { cursor?: string | number }>(
  read: (cursor: Page['cursor']) => Promise<Page>,
): AsyncGenerator<Page, void> {
  let cursor: Page['cursor'] = undefined;
  do {
    const page = await read(cursor);
    yield page;
    ({ cursor } = page);
  } while (cursor !== undefined);
}

/** Resolves after a time, or rejects when the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((settle, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      settle();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * Sends a request, and repeats a read that is answered 429. The timeout ends when a stream has started, or when another
 * reply is complete. The signals of `AbortSignal.timeout` and of a second `Request` are not used, because garbage
 * collection may remove such a signal before it fires.
 */
async function send(request: Request, timeoutMs: number): Promise<Response> {
  const control = new AbortController();
  const { signal } = control;
  const end = () => control.abort(new DOMException('The call took too long', 'TimeoutError'));
  const timer = setTimeout(end, Math.min(timeoutMs, LONGEST_TIMEOUT_MS));
  const onAbort = () => control.abort(request.signal.reason);
  request.signal.addEventListener('abort', onAbort);
  if (request.signal.aborted) onAbort();
  try {
    for (let repeats = 0; ; repeats++) {
      const response = await fetch(request, { signal });
      if (response.ok && STREAM_TYPES.test(response.headers.get('Content-Type') ?? '')) return response;
      const pauseMs = Number(response.headers.get('Retry-After')) * 1_000;
      const isRefused = response.status === 429 && request.method === 'GET' && pauseMs <= LONGEST_PAUSE_MS;
      if (!isRefused || repeats === MAX_REPEATS) return await whole(response);
      await response.body?.cancel();
      await pause(pauseMs, signal);
    }
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener('abort', onAbort);
  }
}

/** Waits for the whole body of a reply, and returns the reply with this body. */
async function whole(response: Response): Promise<Response> {
  const body = response.body === null ? null : await response.arrayBuffer();
  return Object.defineProperty(new Response(body, response), 'url', { value: response.url });
}
