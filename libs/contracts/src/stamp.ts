import { applyDecorators } from '@nestjs/common';
import { Matches, MaxLength } from 'class-validator';

/** Longest stamp or cursor of results, characters. */
const MAX_LENGTH = 96;

/** State of Redis at the time of a reply: send the last one with the next call that takes a stamp. */
export type Stamp = string;

/**
 * A stamp as replies to a trainer carry it: the generation of the pool and the sequence of its last event. A trainer
 * passes on the last one it got; when Redis has lost what it stands for, the answer is GENERATION_CHANGED.
 */
export function IsStamp(): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_LENGTH),
    Matches(/^[0-9a-f]+\.\d{1,14}$/, { message: '$property: not a stamp of a reply' }),
  );
}

/** End of a page of `round.results`: opaque, and a proof of all groups that were read before. */
export function IsResultsCursor(): PropertyDecorator {
  return applyDecorators(
    MaxLength(MAX_LENGTH),
    Matches(/^[0-9a-f]+\.\d{1,14}\.\d{1,14}\.[0-9a-f]+\.[0-9a-f]*$/, {
      message: '$property: not a cursor of round.results',
    }),
  );
}
