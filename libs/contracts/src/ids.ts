import { applyDecorators } from '@nestjs/common';
import { Matches, MaxLength, type ValidationOptions } from 'class-validator';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]?: Name };

/** Id of a pool: one NATS token, one Redis hash tag. */
export type PoolName = Branded<'PoolName'>;
export type JobId = Branded<'JobId'>;
export type RoundId = Branded<'RoundId'>;
export type GroupId = Branded<'GroupId'>;
/** `<job>/<groupId>/<sampleIndex>`: unique in the pool. */
export type RequestId = Branded<'RequestId'>;
/** `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same acquireId. */
export type LeaseId = Branded<'LeaseId'>;
export type ServerId = Branded<'ServerId'>;
export type WorkerId = Branded<'WorkerId'>;
/**
 * A fence of one life of something: a trainer of a job, a registration of a worker, a start of a server. It is opaque
 * and compared for equality only. It is no counter: Redis may be set back, and would give the same number twice.
 */
export type Epoch = Branded<'Epoch'>;
/**
 * A fence of one attempt of a request: `<number>-<random>`. The number counts the attempts of the request, for people;
 * all of it is compared. `0` for a request that nobody has claimed yet.
 */
export type AttemptId = Branded<'AttemptId'>;

/** Longest id a caller may choose, in characters. */
export const MAX_ID_LENGTH = 128;
const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;
const CORRELATION_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/;

export const POOL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** An id chosen by a caller: letters, digits and `. _ : -`, at most 128 characters, no space. `each`: a list of them. */
export function IsId(options: Pick<ValidationOptions, 'each'> = {}): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_ID_LENGTH, { ...options, message: `$property must be at most ${MAX_ID_LENGTH} characters` }),
    Matches(ID, {
      ...options,
      message: '$property must start with a letter or digit and hold only letters, digits and . _ : -',
    }),
  );
}

/** As {@link IsId}, with `/` too: request ids and lease ids are composed with it. `each`: a list of them. */
export function IsCorrelationId(options: Pick<ValidationOptions, 'each'> = {}): PropertyDecorator {
  return applyDecorators(
    MaxLength(3 * MAX_ID_LENGTH, { ...options, message: `$property must be at most ${3 * MAX_ID_LENGTH} characters` }),
    Matches(CORRELATION_ID, {
      ...options,
      message: '$property must start with a letter or digit and hold only letters, digits and . _ : - /',
    }),
  );
}

/** Composes the id of one sample of a group. */
export function requestIdOf(job: JobId, groupId: GroupId, sampleIndex: number): RequestId {
  return `${job}/${groupId}/${sampleIndex}`;
}
