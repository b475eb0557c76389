import { ID_RULE, idFault, type IdKind } from '@broomwagon/contracts';
import type { Rule } from './contract-schema';

/** True only when the value certainly satisfies a rule; false also means "ask the full validator". */
export type Check = (value: unknown) => boolean;

type Fast = (limit: never) => Check;
const isText = (value: unknown): value is string => typeof value === 'string';
const isFiniteNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** Most ids are short and of these characters. */
const USUAL_ID = /^[A-Za-z0-9][A-Za-z0-9_:/-]{0,127}$/;

/**
 * The rules of our contracts, written so that V8 inlines them. They may accept less than class-validator, never more:
 * lengths count UTF-16 units, of which a character has at least one.
 */
const FAST: Record<string, Fast> = {
  isString: () => isText,
  isInt: () => (value) => Number.isInteger(value),
  isNumber: () => isFiniteNumber,
  isBoolean: () => (value) => typeof value === 'boolean',
  isArray: () => Array.isArray,
  isObject: () => (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  isDefined: () => (value) => value !== undefined && value !== null,
  min: (limit: number) => (value) => typeof value === 'number' && value >= limit,
  max: (limit: number) => (value) => typeof value === 'number' && value <= limit,
  maxLength: (limit: number) => (value) => isText(value) && value.length <= limit,
  arrayMinSize: (limit: number) => (value) => Array.isArray(value) && value.length >= limit,
  arrayMaxSize: (limit: number) => (value) => Array.isArray(value) && value.length <= limit,
  matches: (pattern: RegExp) => (value) => isText(value) && pattern.test(value),
};

/**
 * Compiles one rule. A constraint that is not among the fast ones runs as class-validator's own function, on the
 * built instance, so any synchronous custom validator is exact too.
 */
export function compileRule(rule: Rule): { check: Check } | { late: (instance: object, value: unknown) => boolean } {
  if (rule.name === ID_RULE) {
    const [most, kind] = rule.constraints as [number, IdKind];
    const one: Check = (value) => isText(value) && (USUAL_ID.test(value) || idFault(value, most, kind) === undefined);
    return { check: rule.each ? (value) => Array.isArray(value) && value.every(one) : one };
  }
  const fast = FAST[rule.name];
  if (fast !== undefined && isFastCase(rule)) {
    const one = fast(rule.constraints[0] as never);
    return { check: rule.each ? (value) => Array.isArray(value) && value.every(one) : one };
  }
  const { metadata } = rule;
  const late = (object: object, value: unknown): boolean => {
    const args = {
      targetName: object.constructor.name,
      property: metadata.propertyName,
      object,
      value,
      constraints: metadata.constraints,
    };
    // A promise is not `true`: unsupported.
    const one = (item: unknown): boolean => (rule.validator.instance.validate(item, args) as unknown) === true;
    return rule.each && Array.isArray(value) ? value.every(one) : one(value);
  };
  return { late };
}

function isFastCase(rule: Rule): boolean {
  const [first, second] = rule.constraints;
  switch (rule.name) {
    case 'isNumber': {
      const options = (first ?? {}) as Record<string, unknown>;
      return options.maxDecimalPlaces === undefined;
    }
    case 'min':
    case 'max':
    case 'maxLength':
    case 'arrayMinSize':
    case 'arrayMaxSize':
      return typeof first === 'number';
    case 'matches':
      // A global or sticky pattern remembers where it stopped; a string pattern has its flags in `second`.
      return first instanceof RegExp && !first.global && !first.sticky && second === undefined;
    default:
      return true;
  }
}
