import { randomUUID } from 'node:crypto';
import { BroomwagonError, cutText, LIMITS, type WireError, wireMessage, wireText } from '@broomwagon/contracts';
import { headers, type MsgHdrs, type NatsConnection } from 'nats';

/** Header with the message of an error; a success has none, so a client may branch without parsing. */
export const ERROR_HEADER = 'Nats-Service-Error';
/** Header with the code of an error. */
export const ERROR_CODE_HEADER = 'Nats-Service-Error-Code';
/**
 * Header with the time that a caller waits for the reply, in milliseconds. A service that reads the message later does
 * not process it. The reply to a message with this header names its replica.
 */
export const TIMEOUT_HEADER = 'Broomwagon-Timeout-Ms';
/** Header of a reply with the id of the replica that made it, which also listens on a separate subject. */
export const REPLICA_HEADER = 'Broomwagon-Replica';

/**
 * Header with the time at which a caller sent the message, milliseconds since 1970 on the caller's clock. Together with
 * {@link TIMEOUT_HEADER} it names the time until which the message may be processed, also after a broker, a buffer or a
 * silent link has held the message.
 */
export const SENT_AT_HEADER = 'Broomwagon-Sent-At-Ms';
/**
 * Header of the reply to a message that was refused because of {@link SENT_AT_HEADER}: the time on the clock of the
 * service, milliseconds since 1970. A caller that still waits corrects its clock and sends the message again.
 */
export const READ_AT_HEADER = 'Broomwagon-Read-At-Ms';

/** A JSON object as it is sent. */
export type JsonObject = Record<string, unknown>;

/** One escape of a JSON text: a surrogate pair, half of one, or any other. */
const ESCAPE = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|[^])/g;
const SURROGATE = /\\u[dD][89a-fA-F]/;
/** Text that may be a number beyond 1.8e308: JSON can write it, but it is read as infinite, and sent on as null. */
const LARGE_NUMBER = /[eE]\+?\d{3,}\s*[,\]}]|[[:,\s]-?\d{210}/;
const HALF_LENGTH = '\\ud800'.length;

/**
 * Reads the body of a message. An empty body is an empty object, so that a status can be asked for with no body. Half a
 * surrogate pair, which JSON can write and Redis cannot read, becomes U+FFFD.
 * @throws BroomwagonError MALFORMED_JSON when it is not a JSON object
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

/** Works on the text and not on the parsed values, so that it needs no walk over values of any depth. */
function withoutHalves(text: string): string {
  return text.replace(ESCAPE, (escape) => (escape.length === HALF_LENGTH ? '\\ufffd' : escape));
}

/** How long the caller waits, milliseconds; infinite without the header, or if the header is not a number. */
export function readTimeoutMs(given: MsgHdrs | undefined): number {
  const timeoutMs = Number(given?.get(TIMEOUT_HEADER) || Number.NaN);
  return timeoutMs > 0 ? timeoutMs : Infinity;
}

/**
 * Publishes a reply: a body or an error. Never throws: a body that cannot be written or is over the server's limit
 * becomes an error reply; nothing is sent over a closed connection.
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
    // The connection is closed, or even the error is too large: the caller waits until its deadline.
  }
  return failure;
}

/** The answer to a defect: contains only an id, under which the log has the cause. */
export function internalError(cause: unknown): { error: BroomwagonError; referenceId: string } {
  const referenceId = randomUUID();
  const error = new BroomwagonError('INTERNAL', 'Internal error; see the log of the service', {
    details: { referenceId },
    cause,
  });
  return { error, referenceId };
}

/** The error of a parsed reply, or undefined when the reply is a result. */
export function readWireError(reply: unknown): BroomwagonError | undefined {
  const error = (reply as { error?: Partial<WireError> } | null)?.error;
  if (typeof error !== 'object' || error === null || typeof error.code !== 'string') return undefined;
  return BroomwagonError.fromWire({ message: error.code, retryable: false, ...error } as WireError);
}

/** Leaves `details` out if they cannot be written as JSON. */
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

/**
 * How long a request lets its service wait, milliseconds: 0 without a `waitMs`, or with a `waitMs` that is no number.
 */
export function readWaitMs(body: object): number {
  const { waitMs } = body as { waitMs?: unknown };
  return typeof waitMs === 'number' ? Math.min(Math.max(0, waitMs), LIMITS.waitMs) : 0;
}
