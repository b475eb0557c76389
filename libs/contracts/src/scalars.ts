declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]?: Name };

/** Id of a pool: a NATS token, and the hash tag of Redis keys. */
export type PoolName = Branded<'PoolName'>;
/** Id of a job, chosen by its trainer. */
export type JobId = Branded<'JobId'>;
/** Id of a round of a job, chosen by its trainer. */
export type RoundId = Branded<'RoundId'>;
/** Id of a group, unique in its job, chosen by the trainer. */
export type GroupId = Branded<'GroupId'>;
/**
 * Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and group; unique in the
 * pool.
 */
export type RequestId = Branded<'RequestId'>;
/** Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId. */
export type LeaseId = Branded<'LeaseId'>;
/** Id of a server (one engine with its address), chosen by the caller that registers it. */
export type ServerId = Branded<'ServerId'>;
/** Id of a worker, which holds leases and requests, chosen by the worker. */
export type WorkerId = Branded<'WorkerId'>;
/**
 * Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch is opaque, and
 * compared for equality only. Epochs are random instead of counted, because a Redis that loses its last changes would
 * give the same number twice.
 */
export type Epoch = Branded<'Epoch'>;
/**
 * Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for display.
 * Services compare the whole text. A request that was never claimed has the attempt `0`.
 */
export type AttemptId = Branded<'AttemptId'>;
/** Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp. */
export type Stamp = string;
/** Labels of a server, e.g. `{"zone": "a"}`. */
export type Labels = Record<string, string>;

// A whole number; the published schemas distinguish it from other numbers. A field of this type needs its own comment.
/** @asType integer */
export type Integer = number;
