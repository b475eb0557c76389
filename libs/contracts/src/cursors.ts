import { Matches } from 'class-validator';

/** The cursor of a page that Redis scans: a number below 2^64, as text. Redis fails on a larger one. */
export function IsScanCursor(): PropertyDecorator {
  return Matches(/^\d{1,19}$/, { message: '$property is not a cursor of an earlier reply' });
}
