import { randomUUID } from 'node:crypto';
import { BroomwagonError, cutText, LIMITS, type WireError, wireMessage, wireText } from '@broomwagon/contracts';
import { headers, type MsgHdrs, type NatsConnection } from 'nats';

/**
 * Header with the message of an error. A success lacks this header, so a client need not parse the body to find errors.
 */
export const ERROR_HEADER = 'Nats-Service-Error';
export const ERROR_CODE_HEADER = 'Nats-Service-Error-Code';
/**
 * Header with the time that a caller waits for the reply, milliseconds. A service that reads the message later does not
 * process the message. The reply to a message with this header has {@link REPLICA_HEADER}.
 */
export const TIMEOUT_HEADER = 'Broomwagon-Timeout-Ms';
/** Header of a reply with the id of the replica that has replied. Each replica also listens on a separate subject. */
export const REPLICA_HEADER = 'Broomwagon-Replica';

/**
 * Header with the time at which a caller sent the message, milliseconds since 1970 on the caller's clock. This header
 * and {@link TIMEOUT_HEADER} limit the time in which the message may be processed, also after a broker, a buffer or a
 * silent link has held the message.
 */
export const SENT_AT_HEADER = 'Broomwagon-Sent-At-Ms';
/**
 * Header of the reply to a message that was refused because of {@link SENT_AT_HEADER}: the time on the clock of the
 * service, milliseconds since 1970. A caller that still waits corrects its clock and sends the message again.
 */
export const READ_AT_HEADER = 'Broomwagon-Read-At-Ms';

export type JsonObject = Record<string, unknown>;

/** One escape of a JSON text: a surrogate pair, half a pair, or another escape. */
const ESCAPE = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|[^])/g;
const SURROGATE = /\\u[dD][89a-fA-F]/;
/** Text that may be a number beyond 1.8e308, which is valid JSON, is parsed as Infinity, and is written as null. */
const LARGE_NUMBER = /[eE]\+?\d{3,}\s*[,\]}]|[[:,\s]-?\d{210}/;
const HALF_LENGTH = '\\ud800'.length;

/**
 * Reads the body of a message. An empty body counts as an empty object. Half a surrogate pair, which Redis cannot read,
 * becomes U+FFFD.
 * @throws BroomwagonError MALFORMED_JSON if the body is not a JSON object
 */
export function decodeBody(bytes: Uint8Array): JsonObject {
  if (bytes.length === 0) {
    return {};
  }
  let body: unknown;
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
    body = JSON.parse(SURROGATE.test(text) ? withoutHalves(text) : text, LARGE_NUMBER.test(text) ? finite : undefined);
  } catch (error) {
    throw new BroomwagonError('MALFORMED_JSON', `The body is not JSON: ${cutText((error as Error).message, 120)}`);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new BroomwagonError('MALFORMED_JSON', 'The body must be a JSON object');
  }
  return body as JsonObject;
}

function finite(name: string, value: unknown): unknown {
  if (value === Infinity || value === -Infinity) throw new Error(`the number ${name} is too large`);
  return value;
}

/** Replaces half surrogate pairs in the text, because parsed values may have any depth. */
function withoutHalves(text: string): string {
  return text.replace(ESCAPE, (escape) => (escape.length === HALF_LENGTH ? '\\ufffd' : escape));
}

/** Returns how long the caller waits, milliseconds; Infinity if the header is absent or not a positive number. */
export function readTimeoutMs(given: MsgHdrs | undefined): number {
  const timeoutMs = Number(given?.get(TIMEOUT_HEADER) || Number.NaN);
  return timeoutMs > 0 ? timeoutMs : Infinity;
}

/**
 * Publishes a body or an error as a reply. A body that is over the limit or cannot be written becomes an error reply.
 * Never throws, also not for a closed connection.
 * @param own headers of the replica that answers
 * @returns the error that went out instead of the body, if any
 */
export function publishReply(
  nats: NatsConnection,
  inbox: string,
  answer: unknown,
  own?: MsgHdrs,
): BroomwagonError | undefined {
  let failure = answer instanceof BroomwagonError ? answer : undefined;
  if (failure === undefined) {
    try {
      nats.publish(inbox, wireText(answer), { headers: own });
      return undefined;
    } catch (error) {
      const tooLarge = (error as { code?: string }).code === 'MAX_PAYLOAD_EXCEEDED';
      failure = tooLarge
        ? new BroomwagonError('PAYLOAD_TOO_LARGE', 'The reply is over the limit of the NATS server; ask for less')
        : internalError(error).error;
    }
  }
  try {
    const made = headers();
    made.set(ERROR_HEADER, headerSafe(wireMessage(failure.message)));
    made.set(ERROR_CODE_HEADER, failure.code);
    for (const name of own?.keys() ?? []) made.set(name, own!.get(name));
    nats.publish(inbox, errorText(failure.toWire()), { headers: made });
  } catch {
    // The connection is closed, or the error is too large too. The caller waits until its deadline.
  }
  return failure;
}

/** Builds the error reply for a defect. The reply has only an id; the log has the cause with this id. */
export function internalError(cause: unknown): { error: BroomwagonError; referenceId: string } {
  const referenceId = randomUUID();
  const error = new BroomwagonError('INTERNAL', 'Internal error; see the log of the service', {
    details: { referenceId },
    cause,
  });
  return { error, referenceId };
}

/** Returns the error of a parsed reply; undefined if the reply is a result. */
export function readWireError(reply: unknown): BroomwagonError | undefined {
  const error = (reply as { error?: Partial<WireError> } | null)?.error;
  if (typeof error !== 'object' || error === null || typeof error.code !== 'string') return undefined;
  return BroomwagonError.fromWire({ message: error.code, retryable: false, ...error } as WireError);
}

/** Writes an error reply, without `details` if they cannot be written as JSON. */
function errorText(error: WireError): string {
  try {
    return wireText({ error });
  } catch {
    return wireText({ error: { ...error, details: undefined } });
  }
}

function headerSafe(text: string): string {
  return text.slice(0, 256).replace(/[^\x20-\x7e]/g, '?');
}

/** Returns how long a service may park a request, milliseconds; 0 without a valid `waitMs`. */
export function readWaitMs(body: object): number {
  const { waitMs } = body as { waitMs?: unknown };
  return typeof waitMs === 'number' ? Math.min(Math.max(0, waitMs), LIMITS.waitMs) : 0;
}
