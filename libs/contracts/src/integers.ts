import { applyDecorators } from '@nestjs/common';
import { IsInt, Max, Min, type ValidationOptions } from 'class-validator';
import { LIMITS } from './limits';

// A whole number; the published schemas tell it from other numbers. A field of this type needs its own comment.
/** @asType integer */
export type Integer = number;

/**
 * An integer without a specific bound: a version, a count. At least `least`, at most `LIMITS.integer`.
 * `each`: a list of them.
 */
export function IsCounter(least: number, options: Pick<ValidationOptions, 'each'> = {}): PropertyDecorator {
  return applyDecorators(IsInt(options), Min(least, options), Max(LIMITS.integer, options));
}
