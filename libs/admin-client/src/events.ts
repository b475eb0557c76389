import { type AdminClient, readData, pause, type Schemas } from './admin-client';
import { AdminApiError } from './admin-api-error';
import type { operations } from './openapi.gen';

/** An event of a pool, with its position in the stream. */
export interface StreamedEvent {
  id: string;
  event: Schemas['PoolEvent'];
}

export interface EventsOptions {
  /** Filter of the events; absent: all events. */
  query?: operations['eventStream']['parameters']['query'];
  /** Id of the event after which the stream begins; absent: the stream begins with the next event. */
  lastId?: string;
  /** True: the stream ends after the events that are stored now. Otherwise the stream continues with new events. */
  once?: boolean;
  /** Called whenever a connection is open, also after failures. */
  onOpen?(): void;
  /** Called with the reason whenever a connection has ended or could not be opened, and another try follows. */
  onEnd?(reason: AdminApiError): void;
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** Silence after which a stream is dead, milliseconds. admin-api sends a comment every 15 s. */
const SILENT_MS = 40_000;
/** Number of consecutive connections without an event after which the stream fails. */
const MAX_FAILURES = 10;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Iterates over the events of a pool. After the end of a connection, the next connection begins after the last event,
 * so that no event is missed or repeated. Ends when `signal` aborts.
 * @throws AdminApiError that is not retryable, or the error of the last of ten consecutive failed connections
 */
export async function* iterateEvents(
  client: AdminClient,
  pool: string,
  { query, lastId, once, onOpen, onEnd, signal }: EventsOptions = {},
): AsyncGenerator<StreamedEvent, void> {
  for (let failures = 1; ; failures++) {
    if (signal?.aborted) return;
    let failure = new AdminApiError({
      code: 'UNREACHABLE',
      reason: 'The stream of events ends before its first event: admin-api cannot read it',
      retryable: true,
    });
    try {
      const header = lastId === undefined ? undefined : { 'Last-Event-ID': lastId };
      const params = { path: { pool }, query, header };
      const body = await readData(client.GET('/api/v1/pools/{pool}/events', { params, parseAs: 'stream', signal }));
      onOpen?.();
      for await (const { id, event, isLive } of parse(decodeText(body!, signal))) {
        if (isLive && once) return;
        if (isLive || event !== undefined) failures = 0;
        lastId = id ?? lastId;
        if (event !== undefined) yield { id: lastId!, event };
      }
    } catch (cause) {
      failure = AdminApiError.ofFailure(cause);
    }
    if (signal?.aborted) return;
    if (!failure.retryable || failures === MAX_FAILURES) throw failure;
    onEnd?.(failure);
    await pause(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), signal).catch(() => undefined);
  }
}

/**
 * Iterates over the text of a reply while the text arrives (`parseAs: 'stream'`). Ends when `signal` aborts.
 * @throws AdminApiError TIMED_OUT after 40 s without a byte, UNREACHABLE if the connection breaks
 */
export async function* decodeText(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  const onAbort = () => void reader.cancel().catch(() => undefined);
  signal?.addEventListener('abort', onAbort);
  if (signal?.aborted) onAbort();
  try {
    for (;;) {
      const { done, value } = await beforeDeadline(reader.read());
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } catch (cause) {
    throw AdminApiError.ofFailure(cause);
  } finally {
    signal?.removeEventListener('abort', onAbort);
    await reader.cancel().catch(() => undefined);
  }
}

async function beforeDeadline<Result>(read: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silent = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DOMException('The stream is silent', 'TimeoutError')), SILENT_MS);
  });
  return Promise.race([read, silent]).finally(() => clearTimeout(timer));
}

/**
 * Parses server-sent events as admin-api writes them, with one line for each field. A stream that begins with the next
 * event first has an id without an event, which is its position. The comment `live` follows the last stored event.
 */
async function* parse(chunks: AsyncIterable<string>): AsyncGenerator<Partial<StreamedEvent> & { isLive?: true }, void> {
  let rest = '';
  for await (const chunk of chunks) {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      if (block === ':live') yield { isLive: true };
      const lines = block.split('\n').map((line) => line.split(/: (.*)/s, 2));
      const { id, data } = Object.fromEntries(lines) as { id?: string; data?: string };
      if (id !== undefined)
        yield { id, event: data === undefined ? undefined : (JSON.parse(data) as Schemas['PoolEvent']) };
    }
  }
}
