import { ID_RULE, type IdKind } from '@broomwagon/contracts';
import { defaultMetadataStorage } from 'class-transformer/cjs/storage.js';
import { getMetadataStorage, IS_OPTIONAL, ValidationTypes } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata';

/** A DTO class of libs/contracts. */
export type ContractClass<T extends object = object> = new () => T;
/** A rule that JSON Schema lacks. The function returns the fault of a value of an object, or undefined. */
export type Rule = (value: unknown, object: unknown) => string | undefined;

/** A JSON Schema, with additional keywords of `validator.ts`. */
export interface Schema {
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array';
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  /** Rules that only class-validator has. */
  rules?: Rule[];
  /** Error messages by keyword. */
  messages?: Record<string, string>;
  /** Kind of the id, if the value is an id. */
  idKind?: IdKind;
  [keyword: string]: unknown;
}

/** Keywords of JSON Schema for rules of class-validator with the same meaning. */
const KEYWORDS: Record<string, (constraints: readonly unknown[]) => Schema | undefined> = {
  isString: () => ({ type: 'string' }),
  isInt: () => ({ type: 'integer' }),
  isNumber: ([options]) => (Object(options).maxDecimalPlaces === undefined ? { type: 'number' } : undefined),
  isBoolean: () => ({ type: 'boolean' }),
  isArray: () => ({ type: 'array' }),
  isObject: () => ({ type: 'object' }),
  min: ([minimum]) => ({ type: 'number', minimum }),
  max: ([maximum]) => ({ type: 'number', maximum }),
  minLength: ([minLength]) => ({ type: 'string', minLength }),
  maxLength: ([maxLength]) => ({ type: 'string', maxLength }),
  matches: ([pattern]) =>
    pattern instanceof RegExp && pattern.flags === '' ? { type: 'string', pattern: pattern.source } : undefined,
  arrayMinSize: ([minItems]) => ({ type: 'array', minItems }),
  arrayMaxSize: ([maxItems]) => ({ type: 'array', maxItems }),
  isIn: ([values]) => ({ type: getCommonType(values as unknown[]), enum: values }),
  equals: ([value]) => ({ type: getCommonType([value]), enum: [value] }),
};
const schemas = new WeakMap<ContractClass, Schema>();

/**
 * Returns the JSON Schema of a DTO class, from the class-validator decorators of the class, its base classes and nested
 * classes.
 * @throws Error for a decorator that has no equivalent
 */
export function getSchema(contract: ContractClass): Schema & Required<Pick<Schema, 'properties'>> {
  let schema = schemas.get(contract);
  if (schema === undefined) {
    const storage = getMetadataStorage();
    const found = storage.groupByPropertyName(storage.getTargetValidationMetadatas(contract, '', false, false));
    const fields = Object.entries(found);
    schema = {
      type: 'object',
      dropNulls: true,
      properties: Object.fromEntries(fields.map(([name, rules]) => [name, buildProperty(contract, rules)])),
      required: fields.filter(([, rules]) => !rules.some(({ name }) => name === IS_OPTIONAL)).map(([name]) => name),
      additionalProperties: false,
    };
    schemas.set(contract, schema);
  }
  return schema as ReturnType<typeof getSchema>;
}

function buildProperty(contract: ContractClass, metadatas: readonly ValidationMetadata[]): Schema {
  const property: Schema = {};
  for (const metadata of metadatas) {
    const part = buildPart(contract, metadata);
    if (metadata.each) {
      add(property, { type: 'array' });
      add((property.items ??= {}), part);
    } else {
      add(property, part);
    }
  }
  for (const one of [property, property.items ?? {}]) {
    one.isFreeForm = (one.type === 'object' && !one.properties) || (one.type === 'array' && !one.items);
  }
  return property;
}

function buildPart(contract: ContractClass, metadata: ValidationMetadata): Schema {
  const { type, name = '', constraints = [], propertyName } = metadata;
  if (type === ValidationTypes.WHITELIST || name === IS_OPTIONAL) return {};
  if (type === ValidationTypes.NESTED_VALIDATION) {
    const nested = defaultMetadataStorage.findTypeMetadata(contract, propertyName);
    if (nested !== undefined) return getSchema(nested.typeFunction() as ContractClass);
  }
  if (type !== ValidationTypes.CUSTOM_VALIDATION) throw new Error(`${contract.name}.${propertyName}: rule ${type}`);
  const keywords = KEYWORDS[name]?.(constraints);
  if (keywords === undefined) {
    const isId = name === ID_RULE;
    return {
      ...(isId && { type: 'string', idKind: constraints[1] as IdKind }),
      rules: [buildRule(contract, metadata)],
    };
  }
  if (typeof metadata.message !== 'string') return keywords;
  const told = Object.keys(keywords).filter((keyword) => keyword !== 'type');
  const message = metadata.message.replaceAll('$property', propertyName);
  return { ...keywords, messages: Object.fromEntries(told.map((keyword) => [keyword, message])) };
}

/** Builds a rule from the function of class-validator itself, so that every synchronous rule is exact. */
function buildRule(
  contract: ContractClass,
  { constraintCls, propertyName, constraints, message }: ValidationMetadata,
): Rule {
  const [{ instance } = { instance: undefined }] = getMetadataStorage().getTargetValidatorConstraints(constraintCls);
  return (value, object) => {
    const args = { value, object: object as object, property: propertyName, targetName: contract.name, constraints };
    if (instance!.validate(value, args) === true) return undefined;
    const text = typeof message === 'string' ? message : (instance!.defaultMessage?.(args) ?? '$property is wrong');
    return text.replaceAll('$property', propertyName);
  };
}

function add(target: Schema, { type, rules, messages, ...others }: Schema): void {
  // The type `integer` replaces `number`.
  if (type !== undefined && (target.type === undefined || type === 'integer')) target.type = type;
  if (rules !== undefined) target.rules = [...(target.rules ?? []), ...rules];
  if (messages !== undefined) target.messages = { ...target.messages, ...messages };
  Object.assign(target, others);
}

function getCommonType(values: readonly unknown[]): Schema['type'] {
  const [type, ...others] = new Set(values.map((value) => typeof value));
  return others.length === 0 ? (type as Schema['type']) : undefined;
}
