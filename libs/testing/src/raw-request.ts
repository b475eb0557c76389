import type { Msg, MsgHdrs, NatsConnection } from 'nats';
import { isOfForeignStream } from './foreign-stream';

interface RawRequestOptions {
  headers?: MsgHdrs;
  /** Default 30,000. */
  timeoutMs?: number;
}

/**
 * Sends a request as any NATS client may, without the client of `libs/messaging`: any bytes, and the reply as it
 * arrives. Acknowledgements of the stream of TEST_FOREIGN_STREAM are left out.
 * @throws NatsError with code 503 when the subject has no subscriber; Error when no reply arrives in time
 */
export async function requestRaw(
  nats: NatsConnection,
  subject: string,
  body?: string | Uint8Array,
  { headers, timeoutMs = 30_000 }: RawRequestOptions = {},
): Promise<Msg> {
  for await (const message of await nats.requestMany(subject, body, { maxWait: timeoutMs, headers })) {
    if (!isOfForeignStream(message)) return message;
  }
  throw new Error(`No reply to ${subject} within ${timeoutMs} ms`);
}
