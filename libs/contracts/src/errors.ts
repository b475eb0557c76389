import type { Integer } from './scalars';

/** Meaning of an error. */
interface ErrorKind {
  retryable: boolean;
  about: string;
  /**
   * HTTP status; default: 404 for codes with `NOT_FOUND`, otherwise 409 (the present state does not allow the call).
   */
  status?: number;
}
const final = (about: string, status?: number): ErrorKind => ({ retryable: false, about, status });
const retryable = (about: string, status?: number): ErrorKind => ({ retryable: true, about, status });

/**
 * Every error that a Broomwagon service can return, over NATS and REST. After a `retryable` error, a repeat may
 * succeed. A repeat is always safe, because commands are idempotent.
 */
export const ERROR_CODES = {
  // The message itself
  MALFORMED_JSON: final('The body is not a JSON object.', 400),
  VALIDATION_FAILED: final('A field is missing, unknown, of the wrong type or out of bounds.', 400),
  PAYLOAD_TOO_LARGE: final('A body, prompt or chunk is over its limit.', 413),
  NOT_FOUND_SUBJECT: final('No handler owns this subject.'),
  // HTTP
  UNAUTHENTICATED: final('The bearer token is missing, unknown, revoked or expired.', 401),
  TOKEN_NOT_FOUND: final('No token has this id, or it was revoked.'),
  FORBIDDEN: final('The token, or the user of NATS, does not allow this operation or this pool.', 403),
  ROUTE_NOT_FOUND: final('There is no such path.'),
  METHOD_NOT_ALLOWED: final('The path has other methods; see the header Allow.', 405),
  UNSUPPORTED_MEDIA_TYPE: final('The body must be application/json.', 415),
  IDEMPOTENCY_KEY_REUSED: final('The Idempotency-Key was used for another request.', 422),
  REQUEST_IN_PROGRESS: retryable('A request with this id or Idempotency-Key is still being processed.'),
  OUTCOME_UNKNOWN: final(
    'The first request with this Idempotency-Key may have taken effect: its replica died, or a service did not answer.',
  ),
  RATE_LIMITED: retryable('Too many requests of this token or address; repeat after retryAfterMs.', 429),
  // The service
  REPLY_FULL: retryable('The reply has no room for this item; send the item again with fewer other items.'),
  OVERLOADED: retryable('The service handles too many requests; repeat after retryAfterMs.', 503),
  SHUTTING_DOWN: retryable('This replica is shutting down; another replica will answer.', 503),
  UNAVAILABLE: retryable('A store or service that this call needs did not answer.', 503),
  STORE_FULL: retryable(
    'Redis is near its maxmemory: submits, claims and acquires are refused until memory is freed.',
    503,
  ),
  SCHEMA_UNSUPPORTED: retryable(
    'This replica does not support the schema version of the pool; the message names what to update.',
    503,
  ),
  TIMEOUT: retryable('No answer within the deadline of the call.', 504),
  INTERNAL: retryable('A defect; the log of the service has the details.', 500),
  // Fences
  FENCED: final('The epoch or attempt is not the current one; register again or take the job over.'),
  GENERATION_CHANGED: final('Redis was restarted or has lost its last changes. Take the job over and reconcile it.'),
  // Routing
  NO_SERVER_AVAILABLE: retryable(
    'No server of the pool both takes leases and meets the constraints; see details.reason.',
    503,
  ),
  SERVERS_FULL: retryable(
    'Every server that meets the constraints is full, or the pool is full; use waitMs to wait for room.',
    429,
  ),
  WAIT_TIMEOUT: final(
    'No room became free within waitMs; see details.reason. The caller decides whether to wait longer.',
    408,
  ),
  QUEUE_FULL: retryable('The queue of waiting calls is full, or a gateway runs as many generations as it may.', 429),
  POOL_NOT_FOUND: final('There is no such pool: its first server or job makes it.'),
  POOL_PAUSED: retryable(
    'The pool is paused, or its weights are being changed: no lease is granted and no request is claimed.',
    503,
  ),
  NO_CAPABLE_SERVER: final('No engine of the pool has the required capabilities.'),
  SESSION_CONFLICT: final(
    'The session has another parent, or is an ancestor of the named parent; name the parent of its first acquire.',
  ),
  SESSION_NOT_FOUND: final('No session of this key is recorded under this id; POST /sessions begins one.'),
  SERVER_NOT_FOUND: final('No such server in the pool.'),
  REPLICA_NOT_FOUND: final('No running replica has this service name or id; see details.'),
  WORKER_NOT_FOUND: final('No worker with this id is registered in the pool; register it.'),
  LEASE_NOT_FOUND: final('No such lease, or it belongs to another worker.'),
  SERVER_ID_TAKEN: retryable(
    'Another engine, which answers at another address, is registered under this id; remove it or choose another id.',
  ),
  SERVER_NOT_READY: retryable('The named server takes no leases at present.'),
  SERVER_FULL: retryable('The named server has no room.'),
  SERVER_UNSUITABLE: final('The named server does not meet the constraints of the acquire.'),
  RELEASED: final('This acquireId was released before it was granted.'),
  ABORTED: final('The acquire was aborted before it was granted.'),
  VERSION_NOT_FOUND: final('The history of the settings does not have this version.'),
  VERSION_MISMATCH: final('The settings have another version than the caller has read.', 412),
  // Jobs and rounds
  JOB_NOT_FOUND: final('No such job in the pool.'),
  JOB_IN_USE: final('The job has an open round or requests in transition, or it is being deleted.'),
  POOL_IN_USE: final('The pool has servers, workers, waiting calls or open rounds; see details.inUse.'),
  ROUND_NOT_FOUND: final('No such round in the job.'),
  ROUND_CONFLICT: final('This round is open with other parameters, or another round is open.'),
  ROUND_CLOSED: final('The round is closed.'),
  ROUND_CANCELLED: final('The round was cancelled; its groups were requeued or dropped.'),
  ROUND_NOT_OPEN: final('The round accepts no more groups.'),
  ROUND_NOT_COMPLETED: retryable('The round does not have all its groups yet.'),
  ROUND_MISMATCH: final(
    'The results that were read differ from those of the round; read them from the beginning. See details.',
  ),
  ROUND_SETTLING: retryable('Cut requests of an earlier round are still being confirmed.'),
  SNAPSHOT_EXISTS: final('The tag names a snapshot of another state of the job.'),
  SNAPSHOT_NOT_FOUND: final('No complete snapshot has this tag; job.snapshots lists them.'),
  RESTORE_UNFINISHED: retryable('The job is being restored; repeat job.restore until it ends.'),
  PLAN_STALE: final('The plan was made for a state that has changed; call round.next again.'),
  DUPLICATE_GROUP: final('The groupId is already in use.'),
  GROUP_NOT_FOUND: final('No such group in the job, or the round has not accepted it.'),
  REQUEST_NOT_FOUND: final('No such request in the pool.'),
  // Weights
  WEIGHT_SYNC_CONFLICT: retryable('Another change of the weights of the pool is in progress.'),
  WEIGHT_SYNC_NOT_FOUND: final('No such change of weights.'),
  WEIGHT_SYNC_ENDED: final('The change of weights has already ended in another way.'),
  WEIGHT_VERSION_MISMATCH: final(
    'No engine has this weight version; see details. Leave the version out, or commit it first.',
  ),
  WEIGHT_VERSION_STALE: final('The pool has a newer weight version.'),
  WEIGHTS_NOT_QUIESCED: retryable('Requests still run with the old weights.'),
  PLAN_NOT_FOUND: final('No such plan in the pool, or it has expired.'),
  // Payloads
  PAYLOAD_NOT_FOUND: final('No payload has this reference.'),
  PAYLOAD_FOREIGN: final('The reference names a payload of another pool, job, group or request.'),
  PAYLOAD_EXISTS: final('Another payload has this name; a complete payload never changes.'),
  PAYLOAD_INCOMPLETE: retryable('Chunks of the payload are missing.'),
  PAYLOAD_STORE_FULL: retryable('The payload quota of the job is used up, or the payload store has no room.', 507),
  // Engines
  ENGINE_UNREACHABLE: retryable('The engine does not answer.', 502),
  ENGINE_BUSY: retryable(
    'The engine, or a proxy before it, cannot serve now (429, 503 and others); repeat after retryAfterMs.',
    503,
  ),
  ENGINE_PROTOCOL: final('The engine uses another protocol than expected.', 502),
  ENGINE_ERROR: retryable('The engine answered with an error.', 502),
  ENGINE_STALLED: retryable('The engine sent nothing within the stall timeout.', 504),
  CONTEXT_TOO_LONG: final('The prompt and the budget have more tokens than the context of the model.', 400),
  MODEL_NOT_FOUND: final('No engine of the pool serves the model that the request names.'),
  ENGINE_REJECTED: final('The engine refused the request itself (4xx).', 422),
};

export type ErrorCode = keyof typeof ERROR_CODES;

export function getHttpStatus(code: ErrorCode): number {
  return ERROR_CODES[code].status ?? (code.includes('NOT_FOUND') ? 404 : 409);
}

/**
 * Reasons in `details.reason` of an acquire or claim that could not be served: the obstacle that has to change first.
 */
export const UNSERVED_REASONS = [
  /** NO_SERVER_AVAILABLE: no server is registered. */
  'no-servers',
  /** NO_SERVER_AVAILABLE: servers that meet the constraints are registered, but none of them takes leases now. */
  'none-ready',
  /**
   * NO_SERVER_AVAILABLE: a change of weights ended at its deadline, or a load failed; no server was reported since
   * then.
   */
  'weights-unknown',
  /** NO_SERVER_AVAILABLE: the servers have weights of other versions than the pool. */
  'weights-differ',
  /** NO_SERVER_AVAILABLE: no registered server meets the constraints of the acquire. */
  'none-fits',
  /** SERVERS_FULL, WAIT_TIMEOUT: all servers that meet the constraints are full. */
  'servers-full',
  /** SERVERS_FULL, WAIT_TIMEOUT: the pool has `poolMaxInflight` leases. */
  'pool-full',
  /** SERVERS_FULL, WAIT_TIMEOUT: the contexts of other sessions fill the KV memory, see `sessionAdmission`. */
  'kv-full',
  /** POOL_PAUSED: after `pool.pause`. */
  'paused',
  /** POOL_PAUSED: the weights of the pool are being changed. */
  'weights-changing',
] as const;
export type UnservedReason = (typeof UNSERVED_REASONS)[number];

/** The field `error` of a reply. */
export interface WireError {
  /** Stable name of the error. */
  code: ErrorCode;
  /** Explanation of this error, as text. */
  message: string;
  /** The same body may succeed later. */
  retryable: boolean;
  /** Path of the first wrong field, e.g. `groups.3.groupId`. */
  field?: string;
  /** Pause before the same body may be sent again, milliseconds. */
  retryAfterMs?: Integer;
  /** More about this error, depending on its code. */
  details?: unknown;
}

/** An error reply; a reply without `error` is a result. */
export interface ErrorReply {
  /** The error. */
  error: WireError;
}

export interface ErrorOptions {
  field?: string;
  retryAfterMs?: number;
  details?: unknown;
  cause?: unknown;
}

/** The only error class that services send. */
export class BroomwagonError extends Error {
  readonly retryable: boolean;
  readonly field?: string;
  readonly retryAfterMs?: number;
  readonly details?: unknown;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'BroomwagonError';
    this.retryable = ERROR_CODES[code].retryable;
    this.field = options.field;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
  }

  toWire(): WireError {
    const { code, message, retryable, field, retryAfterMs, details } = this;
    return { code, message, retryable, field, retryAfterMs, details };
  }

  /** Rebuilds an error that a service sent. An unknown code becomes INTERNAL, with the code in `details`. */
  static fromWire(wire: WireError): BroomwagonError {
    if (!Object.hasOwn(ERROR_CODES, wire.code)) {
      return new BroomwagonError('INTERNAL', wire.message, { details: { code: wire.code, details: wire.details } });
    }
    return new BroomwagonError(wire.code, wire.message, wire);
  }
}

/** VALIDATION_FAILED for one field. */
export function invalidField(field: string, reason: string): BroomwagonError {
  return new BroomwagonError('VALIDATION_FAILED', `${field}: ${reason}`, { field });
}

/** True for a BroomwagonError, optionally of one code. */
export function isBroomwagonError(error: unknown, code?: ErrorCode): error is BroomwagonError {
  return error instanceof BroomwagonError && (code === undefined || error.code === code);
}
