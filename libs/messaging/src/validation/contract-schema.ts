import { defaultMetadataStorage } from 'class-transformer/cjs/storage.js';
import { getMetadataStorage, IS_OPTIONAL, ValidationTypes } from 'class-validator';
import type { ConstraintMetadata } from 'class-validator/types/metadata/ConstraintMetadata';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata';

/** A DTO class of libs/contracts. */
export type ContractClass<T extends object = object> = new () => T;

/** One constraint of a property, as class-validator registered it. */
export interface Rule {
  /** Name of the constraint, e.g. `isInt`. */
  name: string;
  constraints: readonly unknown[];
  /** Applies to the items of an array. */
  each: boolean;
  validator: ConstraintMetadata;
  metadata: ValidationMetadata;
}

/** What the decorators say about one property. */
export interface PropertySchema {
  name: string;
  optional: boolean;
  rules: Rule[];
  /** Has `@ValidateNested()`. */
  isNested: boolean;
  /** Class of `@ValidateNested() @Type(() => X)`. */
  nested?: ContractClass;
  isArray: boolean;
  /** Why it cannot be compiled; such a class always goes to the full validator. */
  unsupportedReason?: string;
}

const BUILT_IN = new Set<unknown>([Object, Array, Map, Set, Date, Number, String, Boolean]);
const schemas = new WeakMap<ContractClass, PropertySchema[]>();

/** What class-validator's and class-transformer's metadata say of a class, base classes included. */
export function contractSchemaOf(contract: ContractClass): PropertySchema[] {
  let schema = schemas.get(contract);
  if (schema === undefined) {
    const storage = getMetadataStorage();
    const all = storage.getTargetValidationMetadatas(contract, '', false, false);
    schema = Object.entries(storage.groupByPropertyName(all)).map(([name, found]) =>
      readProperty(contract, name, found),
    );
    schemas.set(contract, schema);
  }
  return schema;
}

/** True when class-transformer would do more than copy, build nested classes and set defaults. */
export function hasTransformations(contract: ContractClass): boolean {
  return (
    defaultMetadataStorage.getExposedMetadatas(contract).length > 0 ||
    defaultMetadataStorage.getExcludedMetadatas(contract).length > 0
  );
}

function readProperty(contract: ContractClass, name: string, metadatas: ValidationMetadata[]): PropertySchema {
  const schema: PropertySchema = {
    name,
    optional: false,
    rules: [],
    isNested: false,
    isArray: Reflect.getMetadata('design:type', contract.prototype, name) === Array,
  };
  for (const metadata of metadatas) {
    if ((metadata.groups ?? []).length > 0 || metadata.validateIf !== undefined) {
      schema.unsupportedReason = 'conditional rule';
    }
    readMetadata(schema, metadata);
  }
  const type = defaultMetadataStorage.findTypeMetadata(contract, name);
  if (type !== undefined) {
    const target = type.typeFunction() as ContractClass;
    if (schema.isNested && type.options?.discriminator === undefined && !BUILT_IN.has(target)) {
      schema.nested = target;
    } else {
      schema.unsupportedReason = 'coercion';
    }
  } else if (schema.isNested) {
    schema.unsupportedReason = 'nested without @Type';
  }
  const transforms = defaultMetadataStorage.findTransformMetadatas(contract, name, 0);
  const descriptor = Object.getOwnPropertyDescriptor(contract.prototype, name);
  if (transforms.length > 0 || descriptor !== undefined || name in Object.prototype) {
    schema.unsupportedReason = 'transformation';
  }
  return schema;
}

function readMetadata(schema: PropertySchema, metadata: ValidationMetadata): void {
  switch (metadata.type) {
    case ValidationTypes.CONDITIONAL_VALIDATION:
      if (metadata.name === IS_OPTIONAL) {
        schema.optional = true;
      } else {
        schema.unsupportedReason = 'conditional rule';
      }
      return;
    case ValidationTypes.WHITELIST:
      return;
    case ValidationTypes.NESTED_VALIDATION:
      schema.isNested = true;
      schema.isArray ||= metadata.each === true;
      return;
    case ValidationTypes.PROMISE_VALIDATION:
      schema.unsupportedReason = 'promise';
      return;
    default:
      for (const validator of getMetadataStorage().getTargetValidatorConstraints(metadata.constraintCls)) {
        schema.rules.push({
          name: metadata.name ?? validator.name ?? '',
          constraints: metadata.constraints ?? [],
          each: metadata.each === true,
          validator,
          metadata,
        });
        if (validator.async) schema.unsupportedReason = 'async rule';
      }
  }
}
