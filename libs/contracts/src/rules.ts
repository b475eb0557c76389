import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsInt,
  IsNumber,
  IsObject,
  IsString,
  Matches,
  Max,
  MaxLength,
  Min,
  ValidateBy,
  ValidateNested,
  type ValidationOptions,
} from 'class-validator';
import { ID_RULE, idFault, MAX_COMPOSED_ID_BYTES, MAX_ID_BYTES, type IdKind } from './ids';
import { LIMITS } from './limits';

const MAX_EPOCH_LENGTH = 32;
/** Longest stamp or cursor of results, characters. */
const MAX_STAMP_LENGTH = 96;
const MAX_SCAN_CURSOR_LENGTH = 20 + MAX_COMPOSED_ID_BYTES;
const SCAN_CURSOR = /^\d{1,19}(~.+)?$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;

export function IsWithin(min: number, max: number, options?: ValidationOptions): PropertyDecorator {
  return applyDecorators(IsInt(options), Min(min, options), Max(max, options));
}

/** A finite number from `min` to `max`. */
export function IsDecimal(min: number, max: number): PropertyDecorator {
  return applyDecorators(IsNumber({ allowNaN: false, allowInfinity: false }), Min(min), Max(max));
}

/** An array of `min` to `max` items. */
export function IsList(max: number, min = 0): PropertyDecorator {
  return applyDecorators(IsArray(), ...(min > 0 ? [ArrayMinSize(min)] : []), ArrayMaxSize(max));
}

/** An array of `min` to `max` objects of a class. */
export function IsListOf(itemClass: () => new () => object, max: number, min = 0): PropertyDecorator {
  return applyDecorators(IsList(max, min), ValidateNested({ each: true }), Type(itemClass));
}

/**
 * An integer without a specific bound: a version, a count. At least `least`, at most `LIMITS.integer`. `each`: a list
 * of such integers.
 */
export function IsCounter(least: number, options: Pick<ValidationOptions, 'each'> = {}): PropertyDecorator {
  return IsWithin(least, LIMITS.integer, options);
}

/** An id chosen by a caller: any text of 1 to 128 bytes without control characters. `each`: a list of ids. */
export function IsId(options: Pick<ValidationOptions, 'each'> = {}, mostBytes = MAX_ID_BYTES): PropertyDecorator {
  return isWireId(mostBytes, 'plain', options);
}

/**
 * Like {@link IsId}, up to {@link MAX_COMPOSED_ID_BYTES} bytes, for composed ids and for ids that only correlate calls.
 */
export function IsCorrelationId(options: Pick<ValidationOptions, 'each'> = {}): PropertyDecorator {
  return isWireId(MAX_COMPOSED_ID_BYTES, 'composed', options);
}

/**
 * Like {@link IsId}, and one token of a NATS subject, because commands for a worker are sent to a subject with its id.
 */
export function IsWorkerId(): PropertyDecorator {
  return isWireId(MAX_ID_BYTES, 'token', {});
}

/** A name: letters, digits and `. _ : -`, at most 128 characters. */
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

/** An {@link Epoch} from a reply. */
export function IsEpoch(): PropertyDecorator {
  const message = '$property must be an epoch as a reply gave it: lower-case letters and digits';
  return applyDecorators(IsString(), MaxLength(MAX_EPOCH_LENGTH), Matches(/^[0-9a-z]+$/, { message }));
}

/** An {@link AttemptId} from a claim. */
export function IsAttempt(): PropertyDecorator {
  const message = '$property must be the attempt of a claim: <number>-<letters and digits>';
  return applyDecorators(IsString(), MaxLength(2 * MAX_EPOCH_LENGTH), Matches(/^[0-9]+(-[0-9a-z]+)?$/, { message }));
}

/**
 * A stamp of a reply to a trainer: pool generation and sequence of the last event. A trainer sends the latest stamp
 * with the next call. If Redis has lost changes since then, the answer is GENERATION_CHANGED.
 */
export function IsStamp(): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_STAMP_LENGTH),
    Matches(/^[0-9a-f]+\.\d{1,14}$/, { message: '$property: not a stamp of a reply' }),
  );
}

/** End of a page of `round.results`: opaque, and a proof of all groups that were read before. */
export function IsResultsCursor(): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_STAMP_LENGTH),
    Matches(/^[0-9a-f]+\.\d{1,14}\.\d{1,14}\.[0-9a-f]+\.[0-9a-f]*$/, {
      message: '$property: not a cursor of round.results',
    }),
  );
}

/**
 * The cursor of a page that Redis scans: a number as text, of at most 19 digits, and behind `~` the last id of a page
 * that ends within a step of the scan. Redis fails on numbers from 2^64 on.
 */
export function IsScanCursor(): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_SCAN_CURSOR_LENGTH),
    Matches(SCAN_CURSOR, { message: '$property is not a cursor of an earlier reply' }),
  );
}

/** Maximum labels of one server or one acquire. */
export const MAX_LABELS = 16;
const LABEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const LABEL_VALUE = /^[A-Za-z0-9._/-]{0,63}$/;

/** At most 16 labels; names and values of letters, digits and `. _ / -`, at most 63 characters each. */
export function IsLabels(): PropertyDecorator {
  return applyDecorators(
    IsObject(),
    ValidateBy({
      name: 'isLabels',
      constraints: [MAX_LABELS, LABEL_NAME, LABEL_VALUE],
      validator: {
        validate: isLabels,
        defaultMessage: () =>
          `$property must hold at most ${MAX_LABELS} labels; names and values of letters, digits and . _ / -`,
      },
    }),
  );
}

function isLabels(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= MAX_LABELS &&
    entries.every(([name, label]) => LABEL_NAME.test(name) && typeof label === 'string' && LABEL_VALUE.test(label))
  );
}
