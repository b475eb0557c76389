import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsInt,
  IsNumber,
  Max,
  Min,
  ValidateNested,
  type ValidationOptions,
} from 'class-validator';

/** An integer from `min` to `max`. */
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
