import { BroomwagonError, cutText } from '@broomwagon/contracts';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { DataValidateFunction } from 'ajv/dist/types';
import { getSchema, type ContractClass, type Rule, type Schema } from './json-schema';

/** One fault of a body. `field` is a path, e.g. `groups.3.groupId`; empty for the whole body. */
export interface FieldError {
  field: string;
  reason: string;
}

/** Maximum faults in a reply, because 2,048 wrong items would make a reply of a megabyte. */
const MAX_DETAILS = 32;
const MAX_TEXT_LENGTH = 256;
/** Maximum depth of a free-form value. The JSON of Redis allows 1,000. */
const MAX_DEPTH = 500;

/** Error messages that replace the messages of Ajv, by keyword. */
const TEXTS: Record<string, (params: Record<string, unknown>) => string> = {
  required: () => 'is missing',
  additionalProperties: ({ additionalProperty }) => `property ${String(additionalProperty)} should not exist`,
  type: ({ type }) => `must be ${/^[aio]/.test(String(type)) ? 'an' : 'a'} ${String(type)}`,
  enum: ({ allowedValues }) => `must be one of: ${(allowedValues as unknown[]).join(', ')}`,
};

// `strictNumbers` refuses Infinity, which `JSON.parse` returns for 1e400.
const ajv = new Ajv({ allErrors: true, verbose: true, strict: false, strictNumbers: true, validateSchema: false });
ajv
  .addKeyword({ keyword: 'dropNulls', type: 'object', before: 'required', modifying: true, compile: dropNulls })
  .addKeyword({ keyword: 'rules', compile: buildCheck })
  .addKeyword({ keyword: 'isFreeForm', compile: (is, schema) => buildCheck(is ? [freeFormFault] : [], schema) });
const compiled = new Map<ContractClass, ValidateFunction>();

/**
 * Checks a parsed JSON body against a DTO class. Unknown fields are refused, and no value is converted. A field with
 * `null` counts as absent and is deleted from the body, because many clients write all their fields.
 * @returns the body
 * @throws BroomwagonError VALIDATION_FAILED with the first `field` and all `details: [{field, reason}]`
 */
export function validate<T extends object>(contract: ContractClass<T>, body: unknown): T {
  let check = compiled.get(contract);
  if (check === undefined) {
    check = ajv.compile(getSchema(contract));
    compiled.set(contract, check);
  }
  if (check(body)) return body as T;
  throw failure(check.errors!);
}

function dropNulls(_: true, { properties = {} }: Schema): DataValidateFunction {
  return (body: Record<string, unknown>) => {
    for (const name in body) if (body[name] === null && Object.hasOwn(properties, name)) delete body[name];
    return true;
  };
}

function buildCheck(rules: readonly Rule[], parentSchema: Schema): DataValidateFunction {
  const check: DataValidateFunction = (value, context) => {
    for (const rule of rules) {
      const message = rule(value, context!.parentData);
      if (message !== undefined) {
        check.errors = [{ keyword: 'rules', message, parentSchema, params: {} }];
        return false;
      }
    }
    return true;
  };
  return check;
}

/** Refuses `__proto__`, which may change a prototype in a copy, and depths that overflow the stack. */
function freeFormFault(value: unknown, _?: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > MAX_DEPTH) return 'is nested too deeply';
  if (Object.hasOwn(value, '__proto__')) return 'property __proto__ should not exist';
  for (const one of Object.values(value)) {
    const fault = freeFormFault(one, undefined, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function failure(found: readonly ErrorObject[]): BroomwagonError {
  // A value of a wrong type breaks other rules too; reports of these rules would mislead.
  const mistyped = new Set(found.filter(({ keyword }) => keyword === 'type').map(({ instancePath }) => instancePath));
  const errors = found.filter(({ keyword, instancePath }) => keyword === 'type' || !mistyped.has(instancePath));
  const details = errors.slice(0, MAX_DETAILS).map(toFieldError);
  const { field, reason } = details[0]!;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new BroomwagonError('VALIDATION_FAILED', `${field === '' ? 'The body' : field}: ${reason}${more}`, {
    field,
    details,
  });
}

/** Converts an error of Ajv. An item of a list has a path of its own only if it is an object. */
function toFieldError({ instancePath, keyword, message, params, parentSchema }: ErrorObject): FieldError {
  const path = instancePath.split('/').slice(1);
  const { type, messages } = parentSchema as Schema;
  const isItem = type !== 'object' && /^\d+$/.test(path.at(-1) ?? '');
  if (isItem) path.pop();
  const { missingProperty, additionalProperty } = params as Record<string, string | undefined>;
  const inner = missingProperty ?? additionalProperty;
  if (inner !== undefined) path.push(inner);
  const told = keyword === 'rules' ? message : messages?.[keyword];
  const reason = told ?? `${isItem ? 'each value ' : ''}${TEXTS[keyword]?.(params) ?? message}`;
  return { field: cut(path.join('.')), reason: cut(reason) };
}

function cut(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${cutText(text, MAX_TEXT_LENGTH - 1)}…` : text.toWellFormed();
}
