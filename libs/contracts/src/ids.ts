import { applyDecorators } from '@nestjs/common';
import { Matches, MaxLength, ValidateBy, type ValidationOptions } from 'class-validator';

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

/** Longest id a caller may choose, in bytes of UTF-8. */
export const MAX_ID_BYTES = 128;
/** Longest composed or correlation id: `/` and `~` of the job and the group take two bytes each in a request id. */
export const MAX_COMPOSED_ID_BYTES = 2 * 2 * MAX_ID_BYTES + 8;

export const POOL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const CONTROL = /[\p{Cc}\p{Cs}]/u;
/** One token of a NATS subject. */
const TOKEN = /^[^\s.*>]+$/u;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;

/** Rules of this name are those of ids; their constraints are the most bytes, and what the id is. */
export const ID_RULE = 'isWireId';
/** `plain`: one name; `composed`: names with `/` between them, or a name that nothing is composed of. */
export type IdKind = 'plain' | 'composed' | 'token';

/** What is wrong with a text as an id; undefined when nothing is. */
export function idFault(text: string, mostBytes = MAX_ID_BYTES, kind: IdKind = 'plain'): string | undefined {
  if (text === '') return 'must not be empty';
  if (text.length > mostBytes || (text.length * 3 > mostBytes && utf8Bytes(text) > mostBytes)) {
    return `must be at most ${mostBytes} bytes`;
  }
  if (CONTROL.test(text)) return 'must not hold control characters or half characters';
  if (kind === 'token' && !TOKEN.test(text)) return 'must be one token of a NATS subject: without spaces and . * >';
  return undefined;
}

/** An id chosen by a caller: any characters but control characters, at most 128 bytes. `each`: a list of them. */
export function IsId(options: Pick<ValidationOptions, 'each'> = {}, mostBytes = MAX_ID_BYTES): PropertyDecorator {
  return isWireId(mostBytes, 'plain', options);
}

/**
 * As {@link IsId}, up to {@link MAX_COMPOSED_ID_BYTES}: ids that are composed of others, and those that only correlate
 * calls.
 */
export function IsCorrelationId(options: Pick<ValidationOptions, 'each'> = {}): PropertyDecorator {
  return isWireId(MAX_COMPOSED_ID_BYTES, 'composed', options);
}

/** As {@link IsId}, and one token of a NATS subject: commands for a worker are sent to a subject with its id. */
export function IsWorkerId(): PropertyDecorator {
  return isWireId(MAX_ID_BYTES, 'token', {});
}

/** A name that is also a name of a field: letters, digits and `. _ : -`, at most 128 characters. */
export function IsName(): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_ID_BYTES, { message: `$property must be at most ${MAX_ID_BYTES} characters` }),
    Matches(NAME, { message: '$property must start with a letter or digit and hold only letters, digits and . _ : -' }),
  );
}

function isWireId(mostBytes: number, kind: IdKind, options: Pick<ValidationOptions, 'each'>): PropertyDecorator {
  return ValidateBy(
    {
      name: ID_RULE,
      constraints: [mostBytes, kind],
      validator: {
        validate: (value: unknown) => typeof value === 'string' && idFault(value, mostBytes, kind) === undefined,
        defaultMessage: (args) => {
          const value: unknown = args?.value;
          return `$property ${typeof value === 'string' ? idFault(value, mostBytes, kind) : 'must be a string'}`;
        },
      },
    },
    options,
  );
}

/**
 * Composes the id of one sample of a group: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job
 * and group, as in a JSON pointer.
 */
export function requestIdOf(job: JobId, groupId: GroupId, sampleIndex: number): RequestId {
  return `${idPart(job)}/${idPart(groupId)}/${sampleIndex}`;
}

/** An id as it stands within a composed one. */
export function idPart(id: string): string {
  return id.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The id again that stands within a composed one. */
export function idOfPart(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0)!;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}
