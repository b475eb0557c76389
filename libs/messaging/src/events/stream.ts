import type { NatsError } from 'nats';
import type { MessagingConnection } from '../connection';

/** A JetStream stream, by what it takes and keeps. */
export interface StreamDescription {
  name: string;
  subjects: string[];
  maxBytes: number;
  maxAgeMs: number;
}
/** One stored message. */
export interface StoredMessage {
  /** Place in the stream, from 1. */
  sequence: number;
  subject: string;
  text: string;
}

const NANOSECONDS_PER_MS = 1_000_000;
const FETCH_MS = 5_000;
/** `err_code` of JetStream. */
const STREAM_NOT_FOUND = 10_059;

/** Makes the stream if there is none; an existing one is not changed. @throws Error without JetStream */
export async function ensureStream({ nats }: MessagingConnection, description: StreamDescription): Promise<void> {
  const { name, subjects, maxBytes, maxAgeMs } = description;
  const manager = await nats.jetstreamManager();
  const known = await manager.streams.info(name).catch(() => undefined);
  if (known !== undefined) return;
  await manager.streams.add({ name, subjects, max_bytes: maxBytes, max_age: maxAgeMs * NANOSECONDS_PER_MS });
}

/** Where to read a stream. */
export interface StreamPosition {
  stream: string;
  /** Subject filter. */
  subject: string;
  /** First sequence; default: `sinceMs`, or the beginning. */
  from?: number;
  /** Messages stored since then, milliseconds since 1970. */
  sinceMs?: number;
}

/**
 * The messages that the stream has now from a position on, in order; ends with the last one. None before the stream is
 * made. @throws Error without JetStream
 */
export async function* readStream(
  { nats }: MessagingConnection,
  { stream, subject, from, sinceMs }: StreamPosition,
  batch: number,
): AsyncGenerator<StoredMessage> {
  const start = {
    filterSubjects: subject,
    ...(from === undefined ? {} : { opt_start_seq: from }),
    ...(from === undefined && sinceMs !== undefined ? { opt_start_time: new Date(sinceMs).toISOString() } : {}),
  };
  const consumer = await nats.jetstream().consumers.get(stream, start).catch(unlessNoStream);
  if (consumer === undefined) return;
  try {
    let left = (await consumer.info()).num_pending;
    while (left > 0) {
      const page = await consumer.fetch({ max_messages: Math.min(batch, left), expires: FETCH_MS });
      let read = 0;
      for await (const message of page) {
        read += 1;
        left -= 1;
        yield { sequence: message.seq, subject: message.subject, text: message.string() };
        if (left === 0) break;
      }
      if (read === 0) return;
    }
  } finally {
    // Otherwise the server keeps it for minutes.
    await consumer.delete().catch(() => false);
  }
}

function unlessNoStream(error: NatsError): undefined {
  if (error.api_error?.err_code !== STREAM_NOT_FOUND) throw error;
}

/**
 * Hands on every message that is stored from now on, in order. @returns the last sequence before, and what ends it
 * @throws Error without JetStream, or without the stream
 */
export async function followStream(
  { nats }: MessagingConnection,
  { stream, subject }: StreamPosition,
  onMessage: (message: StoredMessage) => void,
): Promise<{ after: number; stop: () => void }> {
  const { state } = await (await nats.jetstreamManager()).streams.info(stream);
  const consumer = await nats.jetstream().consumers.get(stream, {
    filterSubjects: subject,
    opt_start_seq: state.last_seq + 1,
  });
  const messages = await consumer.consume({
    callback: (message) => onMessage({ sequence: message.seq, subject: message.subject, text: message.string() }),
  });
  return { after: state.last_seq, stop: () => messages.stop() };
}
