import type { Integer } from './scalars';

/** What an error means. */
interface ErrorKind {
  retryable: boolean;
  about: string;
  /** HTTP status; default: 404 for what names a missing thing, otherwise 409: the present state does not allow it. */
  status?: number;
}

/**
 * Every error that a Broomwagon service can return, over NATS and REST. `retryable` says whether the same command may
 * succeed later; repeating is always safe, because every command is idempotent.
 */
export const ERROR_CODES = {
  // The message itself
  MALFORMED_JSON: { status: 400, retryable: false, about: 'The body is not a JSON object.' },
  VALIDATION_FAILED: {
    status: 400,
    retryable: false,
    about: 'A field is missing, unknown, of the wrong type or out of bounds.',
  },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false, about: 'A body, prompt or chunk is over its limit.' },
  NOT_FOUND_SUBJECT: { retryable: false, about: 'No handler owns this subject.' },
  // HTTP
  UNAUTHENTICATED: {
    status: 401,
    retryable: false,
    about: 'The bearer token is missing, unknown, revoked or expired.',
  },
  FORBIDDEN: { status: 403, retryable: false, about: 'The token does not allow this operation or this pool.' },
  ROUTE_NOT_FOUND: { retryable: false, about: 'There is no such path.' },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false, about: 'The path has other methods; see the header Allow.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false, about: 'The body must be application/json.' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, retryable: false, about: 'The Idempotency-Key was used for another request.' },
  REQUEST_IN_PROGRESS: { retryable: true, about: 'A request with this Idempotency-Key is still being processed.' },
  OUTCOME_UNKNOWN: {
    retryable: false,
    about: 'The replica that processed the first request with this Idempotency-Key has died. Read the state.',
  },
  RATE_LIMITED: {
    status: 429,
    retryable: true,
    about: 'Too many requests of this token or address; repeat after retryAfterMs.',
  },
  // The service
  REPLY_FULL: {
    retryable: true,
    about: 'The reply has no room for this item; send the item again with fewer other items.',
  },
  OVERLOADED: {
    status: 503,
    retryable: true,
    about: 'The service handles too many requests; repeat after retryAfterMs.',
  },
  SHUTTING_DOWN: { status: 503, retryable: true, about: 'This replica is shutting down; another replica will answer.' },
  UNAVAILABLE: { status: 503, retryable: true, about: 'A store or service that this call needs did not answer.' },
  STORE_FULL: {
    status: 503,
    retryable: true,
    about: 'Redis is near its maxmemory: submits, claims and acquires are refused until memory is freed.',
  },
  SCHEMA_UNSUPPORTED: {
    status: 503,
    retryable: true,
    about: 'This replica does not support the schema version of the pool; the message names what to update.',
  },
  TIMEOUT: { status: 504, retryable: true, about: 'No answer within the deadline of the call.' },
  INTERNAL: { status: 500, retryable: true, about: 'A defect; the log of the service has the details.' },
  // Fences
  FENCED: {
    retryable: false,
    about: 'The epoch or attempt is not the current one; register again or take the job over.',
  },
  GENERATION_CHANGED: {
    retryable: false,
    about: 'Redis was restarted or has lost its last changes. Take the job over and reconcile it.',
  },
  // Routing
  NO_SERVER_AVAILABLE: {
    status: 503,
    retryable: true,
    about: 'No server of the pool takes leases, or none of those that do meets the constraints; see details.reason.',
  },
  SERVERS_FULL: {
    status: 429,
    retryable: true,
    about: 'Every server that meets the constraints is full, or the pool is full; use waitMs to wait for room.',
  },
  WAIT_TIMEOUT: {
    status: 408,
    retryable: false,
    about: 'No room became free within waitMs; see details.reason. The caller decides whether to wait longer.',
  },
  QUEUE_FULL: { status: 429, retryable: true, about: 'The queue of waiting calls is full.' },
  POOL_NOT_FOUND: { retryable: false, about: 'There is no such pool, and no service serves one of this name.' },
  POOL_PAUSED: {
    status: 503,
    retryable: true,
    about: 'The pool is paused, or its weights are being changed: no lease is granted and no request is claimed.',
  },
  NO_CAPABLE_SERVER: { retryable: false, about: 'No engine of the pool has the required capabilities.' },
  SERVER_NOT_FOUND: { retryable: false, about: 'No such server in the pool.' },
  WORKER_NOT_FOUND: { retryable: false, about: 'No worker with this id is registered in the pool; register it.' },
  LEASE_NOT_FOUND: { retryable: false, about: 'No such lease, or it belongs to another worker.' },
  SERVER_NOT_READY: { retryable: true, about: 'The named server takes no leases at present.' },
  SERVER_FULL: { retryable: true, about: 'The named server has no room.' },
  SERVER_UNSUITABLE: { retryable: false, about: 'The named server does not meet the constraints of the acquire.' },
  RELEASED: { retryable: false, about: 'This acquireId was released before it was granted.' },
  ABORTED: { retryable: false, about: 'The acquire was aborted before it was granted.' },
  VERSION_NOT_FOUND: { retryable: false, about: 'The history of the settings does not have this version.' },
  VERSION_MISMATCH: {
    status: 412,
    retryable: false,
    about: 'The settings have another version than the caller has read.',
  },
  // Jobs and rounds
  JOB_NOT_FOUND: { retryable: false, about: 'No such job in the pool.' },
  JOB_IN_USE: {
    retryable: false,
    about: 'The job has an open round or requests in transition, or it is being deleted.',
  },
  POOL_IN_USE: {
    retryable: false,
    about: 'The pool has servers, workers, waiting calls or open rounds; see details.inUse.',
  },
  ROUND_NOT_FOUND: { retryable: false, about: 'No such round in the job.' },
  ROUND_CONFLICT: { retryable: false, about: 'This round is open with other parameters, or another round is open.' },
  ROUND_CLOSED: { retryable: false, about: 'The round is closed.' },
  ROUND_CANCELLED: { retryable: false, about: 'The round was cancelled; its groups were requeued or dropped.' },
  ROUND_NOT_OPEN: { retryable: false, about: 'The round accepts no more groups.' },
  ROUND_NOT_COMPLETED: { retryable: true, about: 'The round does not have all its groups yet.' },
  ROUND_MISMATCH: {
    retryable: false,
    about: 'The results that were read differ from those of the round; read them from the beginning. See details.',
  },
  ROUND_SETTLING: { retryable: true, about: 'Cut requests of an earlier round are still being confirmed.' },
  SNAPSHOT_EXISTS: { retryable: false, about: 'The tag names a snapshot of another state of the job.' },
  SNAPSHOT_NOT_FOUND: {
    retryable: false,
    about: 'No complete snapshot has this tag; job.snapshots lists them.',
  },
  RESTORE_UNFINISHED: { retryable: true, about: 'The job is being restored; repeat job.restore until it ends.' },
  PLAN_STALE: { retryable: false, about: 'The plan was made for a state that has changed; call round.next again.' },
  DUPLICATE_GROUP: { retryable: false, about: 'The groupId is already in use.' },
  REQUEST_NOT_FOUND: { retryable: false, about: 'No such request in the pool.' },
  // Weights
  WEIGHT_SYNC_CONFLICT: { retryable: true, about: 'Another change of the weights of the pool is in progress.' },
  WEIGHT_SYNC_NOT_FOUND: { retryable: false, about: 'No such change of weights.' },
  WEIGHT_SYNC_ENDED: { retryable: false, about: 'The change of weights has already ended in another way.' },
  WEIGHT_VERSION_MISMATCH: {
    retryable: false,
    about: 'No engine has this weight version; see details. Leave the version out, or commit it first.',
  },
  WEIGHT_VERSION_STALE: { retryable: false, about: 'The pool has a newer weight version.' },
  WEIGHTS_NOT_QUIESCED: { retryable: true, about: 'Requests still run with the old weights.' },
  PLAN_NOT_FOUND: { retryable: false, about: 'No such plan in the pool, or it has expired.' },
  // Payloads
  PAYLOAD_NOT_FOUND: { retryable: false, about: 'No payload has this reference.' },
  PAYLOAD_FOREIGN: {
    retryable: false,
    about: 'The reference names a payload of another pool, job, group or request.',
  },
  PAYLOAD_EXISTS: {
    retryable: false,
    about: 'Another payload has this name; a complete payload never changes.',
  },
  PAYLOAD_INCOMPLETE: { retryable: true, about: 'Chunks of the payload are missing.' },
  PAYLOAD_STORE_FULL: { status: 507, retryable: true, about: 'The payload quota of the job is used up.' },
  // Engines
  ENGINE_UNREACHABLE: { status: 502, retryable: true, about: 'The engine does not answer.' },
  ENGINE_PROTOCOL: { status: 502, retryable: false, about: 'The engine uses another protocol than expected.' },
  ENGINE_ERROR: { status: 502, retryable: true, about: 'The engine answered with an error.' },
  ENGINE_STALLED: { status: 504, retryable: true, about: 'The engine sent nothing within the stall timeout.' },
  ENGINE_REJECTED: { status: 422, retryable: false, about: 'The engine refused the request itself (4xx).' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** HTTP status of a code. */
export function httpStatusOf(code: ErrorCode): number {
  return (ERROR_CODES[code] as ErrorKind).status ?? (code.includes('NOT_FOUND') ? 404 : 409);
}

/** `details.reason` of an acquire or claim that could not be served: what has to change first. */
export const UNSERVED_REASONS = [
  /** NO_SERVER_AVAILABLE: no server is registered. */
  'no-servers',
  /** NO_SERVER_AVAILABLE: servers are registered, but none takes leases now. */
  'none-ready',
  /** NO_SERVER_AVAILABLE: no ready server meets the constraints of the acquire. */
  'none-fits',
  /** SERVERS_FULL, WAIT_TIMEOUT: all servers that meet the constraints are full. */
  'servers-full',
  /** SERVERS_FULL, WAIT_TIMEOUT: the pool has `poolMaxInflight` leases. */
  'pool-full',
  /** POOL_PAUSED: by `pool.pause`. */
  'paused',
  /** POOL_PAUSED: between `weights.begin` and its end. */
  'weights-changing',
] as const;
export type UnservedReason = (typeof UNSERVED_REASONS)[number];

/** The field `error` of a reply. */
export interface WireError {
  /** Stable name of the error. */
  code: ErrorCode;
  /** What is wrong, as text. */
  message: string;
  /** The same body may succeed later. */
  retryable: boolean;
  /** Path of the first wrong field, e.g. `groups.3.groupId`. */
  field?: string;
  /** Time after which the body may be sent again, milliseconds. */
  retryAfterMs?: Integer;
  /** More about this error, depending on its code. */
  details?: unknown;
}

/** An error reply; a reply without `error` is a result. */
export interface ErrorReply {
  /** What is wrong. */
  error: WireError;
}

export interface ErrorOptions {
  field?: string;
  retryAfterMs?: number;
  details?: unknown;
  cause?: unknown;
}

/** The one error class that crosses a service's edge. Thrown where it occurs, mapped once. */
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

  /** Rebuilds the error a service sent. An unknown code becomes INTERNAL and keeps the code in details. */
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
