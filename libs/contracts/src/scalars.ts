declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]?: Name };

/** Id of a pool: one NATS token, one Redis hash tag. */
export type PoolName = Branded<'PoolName'>;
/** Id of a job, one training run, chosen by its trainer. */
export type JobId = Branded<'JobId'>;
/** Id of a round of a job, chosen by its trainer. */
export type RoundId = Branded<'RoundId'>;
/** Id of a group, one prompt with its samples, unique in its job, chosen by its trainer. */
export type GroupId = Branded<'GroupId'>;
/**
 * Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and group; unique in the
 * pool.
 */
export type RequestId = Branded<'RequestId'>;
/** Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same acquireId. */
export type LeaseId = Branded<'LeaseId'>;
/** Id of a server (one engine with its address), chosen by the caller that registers it. */
export type ServerId = Branded<'ServerId'>;
/** Id of a worker, which holds leases and requests, chosen by the worker. */
export type WorkerId = Branded<'WorkerId'>;
/**
 * Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is opaque and compared
 * for equality only. It is random instead of counted, because a Redis that loses its last changes would give the same
 * number twice.
 */
export type Epoch = Branded<'Epoch'>;
/**
 * Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for display; the
 * whole text is compared. `0` for a request that was never claimed.
 */
export type AttemptId = Branded<'AttemptId'>;
/** State of Redis at the time of a reply: send the last one with the next call that takes a stamp. */
export type Stamp = string;
/** Labels of a server, e.g. `{"zone": "a"}`. */
export type Labels = Record<string, string>;

// A whole number; the published schemas distinguish it from other numbers. A field of this type needs its own comment.
/** @asType integer */
export type Integer = number;
