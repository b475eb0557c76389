import { BroomwagonError, cutText } from '@broomwagon/contracts';
import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { contractSchemaOf, type ContractClass, type PropertySchema } from './contract-schema';
import { typeFault } from './type-fault';

/** One thing that is wrong with a body. `field` is a dotted path, e.g. `groups.3.groupId`; empty for the body. */
export interface FieldError {
  field: string;
  reason: string;
}

/** More than these are not listed: an array of 2,048 wrong items must not make a reply of a megabyte. */
const MAX_DETAILS = 32;
const MAX_TEXT_LENGTH = 256;
const MISSING = 'is missing';

/**
 * Class-validator's word on a body, with unknown fields refused and nothing coerced. Beyond class-validator, a nested
 * object must be there unless it is optional, and must not be an array (nor an array an object); `null` in a field of a
 * contract counts as absent, since many clients write all their fields.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function validateFully<T extends object>(contract: ContractClass<T>, body: unknown): T {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw failure([{ field: '', reason: 'must be an object' }]);
  }
  const given = withoutNulls(contract, body as Record<string, unknown>);
  const errors: FieldError[] = [];
  let instance: T;
  try {
    findWrongShapes(contract, given, '', errors);
    const misshapen = new Set(errors.map(({ field }) => field));
    instance = plainToInstance(contract, given);
    const found = validateSync(instance, {
      whitelist: true,
      forbidNonWhitelisted: true,
      // A request without fields is a class without rules; the whitelist still refuses every field.
      forbidUnknownValues: false,
      validationError: { target: false },
    });
    const others: FieldError[] = [];
    flatten(contract, found, '', others);
    errors.push(...others.filter(({ field }) => !isWithin(field, misshapen)));
  } catch {
    // Too deep for a recursive walk, or a field named `constructor` in a free-form object.
    throw failure([{ field: '', reason: 'cannot be read: nested too deeply or with forbidden names' }]);
  }
  if (errors.length > 0) throw failure(errors);
  return instance;
}

/** True for one of these fields and what stands in it. */
function isWithin(field: string, fields: ReadonlySet<string>): boolean {
  const parts = field.split('.');
  return fields.size > 0 && parts.some((_, index) => fields.has(parts.slice(0, index + 1).join('.')));
}

function failure(errors: FieldError[]): BroomwagonError {
  const details = errors.slice(0, MAX_DETAILS).map(({ field, reason }) => ({ field: cut(field), reason: cut(reason) }));
  const { field, reason } = details[0] as FieldError;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new BroomwagonError('VALIDATION_FAILED', `${field === '' ? 'The body' : field}: ${reason}${more}`, {
    field,
    details,
  });
}

function flatten(
  contract: ContractClass | undefined,
  found: readonly ValidationError[],
  prefix: string,
  into: FieldError[],
): void {
  for (const error of found) {
    const field = prefix + error.property;
    const schema = contract && contractSchemaOf(contract).find(({ name }) => name === error.property);
    if (error.constraints !== undefined) {
      // Each rule of a field that is not there fails, and none of them says so.
      const fault = error.value === undefined ? MISSING : schema && typeFault(schema, error.value);
      const reasons = fault === undefined ? Object.values(error.constraints) : [fault];
      for (const reason of reasons) into.push({ field, reason });
    }
    // Below a list stand its items, by number.
    flattenChildren(schema, error, `${field}.`, into);
  }
}

function flattenChildren(
  schema: PropertySchema | undefined,
  { children = [] }: ValidationError,
  prefix: string,
  into: FieldError[],
): void {
  if (!schema?.isArray) return flatten(schema?.nested, children, prefix, into);
  for (const item of children) flatten(schema.nested, item.children ?? [], `${prefix}${item.property}.`, into);
}

/** A copy without the fields of contracts that are null, at any depth; free-form objects keep theirs. */
function withoutNulls(contract: ContractClass, body: Record<string, unknown>): Record<string, unknown> {
  const given = { ...body };
  for (const { name, nested } of contractSchemaOf(contract)) {
    const value = body[name];
    if (value === null) {
      delete given[name];
    } else if (nested !== undefined && value !== undefined) {
      const clean = (item: unknown): unknown =>
        typeof item === 'object' && item !== null && !Array.isArray(item)
          ? withoutNulls(nested, item as Record<string, unknown>)
          : item;
      given[name] = Array.isArray(value) ? value.map(clean) : clean(value);
    }
  }
  return given;
}

function findWrongShapes(
  contract: ContractClass,
  body: Record<string, unknown>,
  prefix: string,
  into: FieldError[],
): void {
  // Class-transformer leaves out `__proto__` and `constructor`, so the whitelist would not see them.
  for (const name of Object.keys(body).filter((one) => one in Object.prototype)) {
    into.push({ field: prefix + name, reason: `property ${name} should not exist` });
  }
  for (const { name, nested, optional, isArray } of contractSchemaOf(contract)) {
    const value = body[name];
    const field = prefix + name;
    if (nested === undefined) {
      if (hasProto(value)) into.push({ field, reason: 'property __proto__ should not exist' });
      continue;
    }
    if (optional && value === undefined) continue;
    if (Array.isArray(value) !== isArray || typeof value !== 'object' || value === null) {
      into.push({ field, reason: value === undefined ? MISSING : isArray ? 'must be an array' : 'must be an object' });
      continue;
    }
    const items = isArray ? (value as unknown as unknown[]) : [value];
    items.forEach((item, index) => {
      const path = isArray ? `${field}.${index}` : field;
      if (typeof item !== 'object' || item === null || Array.isArray(item)) {
        into.push({ field: path, reason: 'must be an object' });
      } else {
        findWrongShapes(nested, item as Record<string, unknown>, `${path}.`, into);
      }
    });
  }
}

/** Class-transformer leaves out `__proto__` in free-form objects too. */
function hasProto(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasProto);
}

function cut(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${cutText(text, MAX_TEXT_LENGTH - 1)}…` : text.toWellFormed();
}
