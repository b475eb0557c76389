import { ID_RULE } from '@broomwagon/contracts';
import type { PropertySchema, Rule } from './contract-schema';

type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array';

/** The type that a value must have before a rule says anything of use about it. */
const TYPE_OF_RULE: Record<string, JsonType> = {
  isString: 'string',
  minLength: 'string',
  maxLength: 'string',
  matches: 'string',
  isUrl: 'string',
  [ID_RULE]: 'string',
  isInt: 'integer',
  isNumber: 'number',
  min: 'number',
  max: 'number',
  isBoolean: 'boolean',
  isObject: 'object',
  isArray: 'array',
  arrayMinSize: 'array',
  arrayMaxSize: 'array',
};
const NAMES: Record<JsonType, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  object: 'an object',
  array: 'an array',
};

/**
 * What is wrong with the type of a value, or undefined. A wrong type breaks bounds and patterns too, and what these say
 * of it misleads; so it is the only reason that is told.
 */
export function typeFault({ rules, isArray }: PropertySchema, value: unknown): string | undefined {
  const ofItems = rules.filter(({ each }) => each);
  const ofValue = rules.filter(({ each }) => !each);
  const wanted = isArray || ofItems.length > 0 ? 'array' : typeOf(ofValue);
  if (wanted !== undefined && !isOf(wanted, value)) return `must be ${NAMES[wanted]}`;
  const item = typeOf(ofItems);
  if (item === undefined || (value as unknown[]).every((one) => isOf(item, one))) return undefined;
  return `each value must be ${NAMES[item]}`;
}

/** The type that the rules agree on; `integer` is the narrower one. */
function typeOf(rules: readonly Rule[]): JsonType | undefined {
  const types = rules.map(typeOfRule).filter((type) => type !== undefined);
  return types.includes('integer') ? 'integer' : types[0];
}

function typeOfRule({ name, constraints }: Rule): JsonType | undefined {
  if (name !== 'isIn' && name !== 'equals') return TYPE_OF_RULE[name];
  const types = new Set([constraints[0]].flat().map((one) => typeof one));
  const [only] = types;
  return types.size === 1 && (only === 'string' || only === 'number' || only === 'boolean') ? only : undefined;
}

function isOf(type: JsonType, value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
