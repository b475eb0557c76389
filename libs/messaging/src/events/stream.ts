import { Logger } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import { ErrorCode, type NatsError } from 'nats';
import type { MessagingConnection } from '../connection';

/** Name, subjects and bounds of a JetStream stream. */
export interface StreamDescription {
  name: string;
  subjects: string[];
  maxBytes: number;
  maxAgeMs: number;
  /** Number of copies in a cluster. */
  replicas?: number;
  /** True: no message can be deleted or purged. The stream keeps this setting for good. */
  keepsMessages?: boolean;
}
export interface StoredMessage {
  /** Position in the stream, from 1. */
  sequence: number;
  subject: string;
  text: string;
}

const NANOSECONDS_PER_MS = 1_000_000;
const FETCH_MS = 5_000;
/** Values of `err_code` of JetStream. */
const STREAM_NOT_FOUND = 10_059;
const NO_MESSAGE = 10_037;
/** `err_code` without a leader of the cluster or stream. */
const NO_LEADER = new Set([10_008, 10_118]);
const logger = new Logger('Streams');

/**
 * Creates the stream, or updates its bounds. A failed update is a warning.
 * @throws Error without JetStream
 */
export async function ensureStream({ nats }: MessagingConnection, description: StreamDescription): Promise<void> {
  const { name, subjects, maxBytes, maxAgeMs, replicas = 1, keepsMessages } = description;
  const bounds = {
    max_bytes: maxBytes,
    max_age: maxAgeMs * NANOSECONDS_PER_MS,
    num_replicas: replicas,
    ...(keepsMessages ? { deny_delete: true, deny_purge: true } : {}),
  };
  const manager = await nats.jetstreamManager();
  const known = await manager.streams.info(name).catch(unlessNoStream);
  if (known === undefined) {
    await manager.streams.add({ name, subjects, ...bounds });
    return;
  }
  const { config } = known;
  if (Object.entries(bounds).every(([bound, value]) => config[bound as keyof typeof bounds] === value)) return;
  try {
    await manager.streams.update(name, bounds);
    logger.log({ stream: name, bounds }, 'The bounds of the stream were changed');
  } catch (error) {
    logger.warn({ stream: name, bounds, err: error }, 'The bounds of the stream could not be changed');
  }
}

/**
 * Finds streams that store messages of the subjects, and returns one subject for each stream. @throws Error without
 * JetStream
 */
export async function findStreamsOver(
  { nats }: MessagingConnection,
  subjects: readonly string[],
): Promise<{ stream: string; subject: string }[]> {
  const manager = await nats.jetstreamManager();
  const found = new Map<string, string>();
  for (const subject of subjects) {
    for await (const name of manager.streams.names(subject)) found.set(name, subject);
  }
  return [...found].map(([stream, subject]) => ({ stream, subject }));
}

/** Position in a stream from which to read. */
export interface StreamPosition {
  stream: string;
  /** Subject filter. */
  subject: string;
  /** First sequence; default: determined by `sinceMs`, or the beginning of the stream. */
  from?: number;
  /** Time of the first message, milliseconds since 1970. */
  sinceMs?: number;
}

/**
 * Reads the present messages of a stream from a position on, in order; none without a stream. The last message of the
 * subject is the end, because NATS 2.9 reports too few pending messages.
 * @throws Error without JetStream
 * @throws BroomwagonError UNAVAILABLE when none of the remaining messages arrives within five seconds
 */
export async function* readStream(
  { nats }: MessagingConnection,
  { stream, subject, from, sinceMs }: StreamPosition,
  batch: number,
): AsyncGenerator<StoredMessage> {
  const manager = await nats.jetstreamManager();
  const readLast = () => manager.streams.getMessage(stream, { last_by_subj: subject }).catch(unlessNone);
  const last = await readLast();
  if (!last || last.seq < (from ?? 0) || (from === undefined && last.time.getTime() < (sinceMs ?? 0))) return;
  const start = {
    filterSubjects: subject,
    ...(from === undefined ? {} : { opt_start_seq: from }),
    ...(from === undefined && sinceMs !== undefined ? { opt_start_time: new Date(sinceMs).toISOString() } : {}),
  };
  const consumer = await nats.jetstream().consumers.get(stream, start).catch(unlessNone);
  if (consumer === undefined) return;
  try {
    for (let sequence = 0; sequence < last.seq;) {
      const page = await consumer.fetch({ max_messages: batch, expires: FETCH_MS });
      let read = 0;
      for await (const message of page) {
        read += 1;
        sequence = message.seq;
        yield { sequence, subject: message.subject, text: message.string() };
        if (sequence >= last.seq) break;
      }
      if (read > 0) continue;
      // The remaining messages may have been removed meanwhile.
      if ((await readLast())?.seq !== last.seq) return;
      throw new BroomwagonError('UNAVAILABLE', `Stream ${stream} did not send its messages up to ${last.seq}`);
    }
  } finally {
    // The server would keep the consumer for minutes.
    await consumer.delete().catch(() => false);
  }
}

/** Whether a call failed because there is no such stream. */
export function isStreamMissing(error: unknown): boolean {
  return (error as NatsError).api_error?.err_code === STREAM_NOT_FOUND;
}

/**
 * Whether a call failed because JetStream does not answer now, for example during an election. A repeat may succeed.
 */
export function isStreamAway(error: unknown): boolean {
  const { code, api_error: reason } = error as NatsError;
  return code === ErrorCode.Timeout || NO_LEADER.has(reason?.err_code ?? 0);
}

function unlessNoStream(error: unknown): undefined {
  if (!isStreamMissing(error)) throw error;
}

/** Ignores the errors of a missing stream and of a subject without messages. */
function unlessNone(error: unknown): undefined {
  if ((error as NatsError).api_error?.err_code !== NO_MESSAGE) unlessNoStream(error);
}

/** Returns the JSON object in a stored message; undefined, with a warning, if `isBody` accepts none. */
export function parseStoredBody<Body extends object>(
  { sequence, subject, text }: StoredMessage,
  isBody: (body: Partial<Body>) => boolean,
): Body | undefined {
  try {
    const body = JSON.parse(text) as Body | null;
    if (body !== null && isBody(body)) return body;
  } catch {
    // The warning below reports the fault.
  }
  logger.warn({ sequence, subject }, 'A stored message does not have the form of its stream and is left out');
  return undefined;
}

/** Creation time of a stream, and sequence of its last message (0: none). */
export interface StreamState {
  created: string;
  lastSequence: number;
}

/** Reads the state of a stream; undefined if there is no such stream. @throws Error without JetStream */
export async function streamState({ nats }: MessagingConnection, stream: string): Promise<StreamState | undefined> {
  const info = await (await nats.jetstreamManager()).streams.info(stream).catch(unlessNoStream);
  return info && { created: info.created, lastSequence: info.state.last_seq };
}

/**
 * Passes on every message of a stream in order, from `from` or from the next message, until `stop` or until `onMessage`
 * returns false. `stop` does not end the search of nats.js for a deleted stream.
 * @returns the state of the stream before the first message @throws Error without JetStream, or without the stream
 */
export async function followStream(
  { nats }: MessagingConnection,
  { stream, subject, from }: StreamPosition,
  onMessage: (message: StoredMessage) => boolean,
): Promise<StreamState & { stop: () => void }> {
  const { created, state } = await (await nats.jetstreamManager()).streams.info(stream);
  const first = from ?? state.last_seq + 1;
  const consumer = await nats.jetstream().consumers.get(stream, {
    filterSubjects: subject,
    opt_start_seq: first,
  });
  const messages = await consumer.consume({
    callback: (message) => {
      if (!onMessage({ sequence: message.seq, subject: message.subject, text: message.string() })) messages.stop();
    },
  });
  return { created, lastSequence: first - 1, stop: () => messages.stop() };
}
