import type { Integer } from './integers';

/**
 * Every error a Broomwagon service can answer, over NATS and REST alike.
 *
 * `retryable` says whether the very same command may succeed later; repeating is always safe
 * because every command is idempotent by an id of its own call.
 */
export const ERROR_CODES = {
  // The message itself
  MALFORMED_JSON: { retryable: false, about: 'The body is not JSON or not an object.' },
  VALIDATION_FAILED: { retryable: false, about: 'A field is missing, unknown, of the wrong type or out of bounds.' },
  PAYLOAD_TOO_LARGE: { retryable: false, about: 'A body, prompt or chunk is over its limit.' },
  NOT_FOUND_SUBJECT: { retryable: false, about: 'No handler owns this subject.' },
  // The service
  REPLY_FULL: {
    retryable: true,
    about: 'The reply has no room left for this item; send the item again, with fewer others.',
  },
  OVERLOADED: { retryable: true, about: 'Too many requests in hand; come back after retryAfterMs.' },
  SHUTTING_DOWN: { retryable: true, about: 'This replica is draining; another one will answer.' },
  UNAVAILABLE: { retryable: true, about: 'A store or service this call needs did not answer.' },
  STORE_FULL: {
    retryable: true,
    about: 'Redis is near its maxmemory: submits, claims and acquires are refused until work that ends frees memory.',
  },
  TIMEOUT: { retryable: true, about: 'No answer within the deadline of the call.' },
  INTERNAL: { retryable: true, about: 'A defect; the details are in the log of the service.' },
  // Fences
  FENCED: { retryable: false, about: 'The epoch or attempt is not the current one; start over.' },
  GENERATION_CHANGED: {
    retryable: false,
    about: 'Redis was restarted or set back: what was done last may be lost. Take the job over and reconcile it.',
  },
  // Routing
  NO_SERVER_AVAILABLE: {
    retryable: true,
    about: 'No server of the pool takes leases, or none that fits; details.reason says which.',
  },
  SERVERS_FULL: { retryable: true, about: 'Every server that fits is full, or the pool is; waitMs waits for room.' },
  WAIT_TIMEOUT: {
    retryable: false,
    about:
      'The call waited waitMs and nothing made room; details.reason says why. Whether to wait longer is for the caller.',
  },
  QUEUE_FULL: { retryable: true, about: 'The waiting queue is at its bound.' },
  POOL_PAUSED: { retryable: true, about: 'The pool is paused, or its weights change: nothing is granted or claimed.' },
  NO_CAPABLE_SERVER: { retryable: false, about: 'No server of the pool has an engine that can do what is needed.' },
  SERVER_NOT_FOUND: { retryable: false, about: 'No such server in the pool.' },
  WORKER_NOT_FOUND: { retryable: false, about: 'No worker of this id was registered in the pool; register it.' },
  LEASE_NOT_FOUND: { retryable: false, about: 'No such lease, or not of this worker.' },
  SERVER_NOT_READY: { retryable: true, about: 'The named server takes no leases now.' },
  SERVER_FULL: { retryable: true, about: 'The named server has no room.' },
  SERVER_UNSUITABLE: { retryable: false, about: 'The named server does not meet what the acquire asked for.' },
  RELEASED: { retryable: false, about: 'This acquireId was released before it was granted.' },
  ABORTED: { retryable: false, about: 'The acquire was aborted before it was granted.' },
  // Jobs and rounds
  JOB_NOT_FOUND: { retryable: false, about: 'No such job in the pool.' },
  JOB_IN_USE: {
    retryable: false,
    about: 'The job has an open round, something of it still moves, or it is being deleted.',
  },
  POOL_IN_USE: {
    retryable: false,
    about: 'The pool has servers, workers, waiting calls or open rounds; details name them.',
  },
  ROUND_NOT_FOUND: { retryable: false, about: 'No such round in the job.' },
  ROUND_CONFLICT: { retryable: false, about: 'The round or another one is open with other parameters.' },
  ROUND_CLOSED: { retryable: false, about: 'The round is closed; its requests are folded into the ledger.' },
  ROUND_CANCELLED: { retryable: false, about: 'The round was cancelled; its groups were given back or dropped.' },
  ROUND_NOT_OPEN: { retryable: false, about: 'The round takes no more groups.' },
  ROUND_NOT_COMPLETED: { retryable: true, about: 'The round has not yet the groups it needs.' },
  ROUND_MISMATCH: {
    retryable: false,
    about: 'What was read of the round is not what it has; read it from its beginning. The details name what differs.',
  },
  ROUND_SETTLING: { retryable: true, about: 'Cut requests of an earlier round are still being confirmed.' },
  CHECKPOINT_EXISTS: { retryable: false, about: 'The tag names a checkpoint of another state of the job.' },
  CHECKPOINT_NOT_FOUND: {
    retryable: false,
    about: 'No complete checkpoint under this tag; job.checkpoints lists them.',
  },
  RESTORE_UNFINISHED: { retryable: true, about: 'The job is being restored; whoever restores it repeats job.restore.' },
  PLAN_STALE: { retryable: false, about: 'The plan was made for a state that has changed; call round.next again.' },
  DUPLICATE_GROUP: { retryable: false, about: 'The group is already known with other contents.' },
  REQUEST_NOT_FOUND: { retryable: false, about: 'No such request in the pool.' },
  // Weights
  WEIGHT_SYNC_CONFLICT: { retryable: true, about: 'The weights of the pool are being changed by another sync.' },
  WEIGHT_SYNC_NOT_FOUND: { retryable: false, about: 'No such change of weights.' },
  WEIGHT_SYNC_ENDED: { retryable: false, about: 'The change of weights has ended otherwise.' },
  WEIGHT_VERSION_MISMATCH: {
    retryable: false,
    about:
      'No engine has this weight version; `details` has it and that of the pool. Leave it out, or commit it first.',
  },
  WEIGHT_VERSION_STALE: { retryable: false, about: 'The pool has a newer weight version.' },
  WEIGHTS_NOT_QUIESCED: { retryable: true, about: 'Requests still run under the old weights.' },
  PLAN_NOT_FOUND: { retryable: false, about: 'No such plan in the pool, or it is too old.' },
  // Payloads
  PAYLOAD_NOT_FOUND: { retryable: false, about: 'No payload under this reference.' },
  PAYLOAD_FOREIGN: {
    retryable: false,
    about: 'The reference names a payload of another pool, job, group or request.',
  },
  PAYLOAD_EXISTS: {
    retryable: false,
    about: 'Another payload is stored under this name; a complete one never changes.',
  },
  PAYLOAD_INCOMPLETE: { retryable: true, about: 'Not all chunks of the payload have arrived.' },
  PAYLOAD_STORE_FULL: { retryable: true, about: 'The payload quota of the job is used up.' },
  // Engines
  ENGINE_UNREACHABLE: { retryable: true, about: 'The engine does not answer.' },
  ENGINE_PROTOCOL: { retryable: false, about: 'The engine speaks another dialect than expected.' },
  ENGINE_ERROR: { retryable: true, about: 'The engine answered with an error.' },
  ENGINE_STALLED: { retryable: true, about: 'The engine stopped sending within the stall deadline.' },
  ENGINE_REJECTED: { retryable: false, about: 'The engine refused the request itself (4xx).' },
} as const satisfies Record<string, { retryable: boolean; about: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** `details.reason` of an acquire or claim that could not be served: what has to change first. */
export const UNSERVED_REASONS = [
  /** NO_SERVER_AVAILABLE: no server is registered. */
  'no-servers',
  /** NO_SERVER_AVAILABLE: servers are registered, and none takes leases now. */
  'none-ready',
  /** NO_SERVER_AVAILABLE: none of those that take leases meets the restrictions of the acquire. */
  'none-fits',
  /** SERVERS_FULL, WAIT_TIMEOUT: those that the acquire may go to have all the leases they take. */
  'servers-full',
  /** SERVERS_FULL, WAIT_TIMEOUT: the pool has `poolMaxInflight` leases. */
  'pool-full',
  /** POOL_PAUSED: by `pool.pause`. */
  'paused',
  /** POOL_PAUSED: between `weights.begin` and its end. */
  'weights-changing',
] as const;
export type UnservedReason = (typeof UNSERVED_REASONS)[number];

/** What stands under `error` in a reply (architecture: plain JSON on the wire). */
export interface WireError {
  /** Stable name of the error. */
  code: ErrorCode;
  /** What is wrong, for people. */
  message: string;
  /** The very same body may succeed later. */
  retryable: boolean;
  /** Path of the first field that is wrong, e.g. `groups.3.groupId`. */
  field?: string;
  /** Send it again after this, milliseconds. */
  retryAfterMs?: Integer;
  /** More about this error, by its code. */
  details?: unknown;
}

/** What a service answers when it cannot do what was asked for; a reply without `error` is a result. */
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
    return {
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      ...(this.field === undefined ? {} : { field: this.field }),
      ...(this.retryAfterMs === undefined ? {} : { retryAfterMs: this.retryAfterMs }),
      ...(this.details === undefined ? {} : { details: this.details }),
    };
  }

  /** Rebuilds the error a service sent. An unknown code becomes INTERNAL and keeps the code in details. */
  static fromWire(wire: WireError): BroomwagonError {
    if (!Object.hasOwn(ERROR_CODES, wire.code)) {
      return new BroomwagonError('INTERNAL', wire.message, { details: { code: wire.code, details: wire.details } });
    }
    return new BroomwagonError(wire.code, wire.message, wire);
  }
}

/** True for an error of ours, optionally of one code. */
export function isBroomwagonError(error: unknown, code?: ErrorCode): error is BroomwagonError {
  return error instanceof BroomwagonError && (code === undefined || error.code === code);
}
