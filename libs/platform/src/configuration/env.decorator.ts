import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';

/** How the text of a variable becomes a value. */
export type EnvKind = 'string' | 'number' | 'boolean' | 'list' | 'duration';

/** Rules for the value of a field of a configuration class, beside its type. */
export interface EnvRules {
  /** Bounds of a number. */
  min?: number;
  max?: number;
  /** A secret value is never printed. */
  isSecret?: boolean;
}

/** One variable of a configuration class. */
export interface EnvField {
  variable: string;
  property: string;
  description: string;
  kind: EnvKind;
  isSecret: boolean;
}

/** The longest wait of a timer of Node, 24 days: a longer one would end at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** Ten years: of ages, for which no timer waits. */
export const MAX_AGE_MS = 315_360_000_000;

const FIELDS = Symbol('broomwagon.env-fields');
const KIND_OF_TYPE = new Map<unknown, EnvKind>([
  [Number, 'number'],
  [Boolean, 'boolean'],
  [Array, 'list'],
]);

/**
 * Reads a field of a configuration class from an environment variable and checks it by its type and `rules`: numbers
 * are whole; a number in `..._MS` is a duration, as `250`, `250ms`, `30s`, `5m` or `2h`, of at most 24 days if
 * `rules` have no maximum; commas separate a list. A field without a default is optional.
 */
export function Env(variable: string, description: string, rules: EnvRules = {}): PropertyDecorator {
  return (target, name) => {
    const property = String(name);
    const ofType = KIND_OF_TYPE.get(Reflect.getMetadata('design:type', target, property)) ?? 'string';
    const kind = ofType === 'number' && variable.endsWith('_MS') ? 'duration' : ofType;
    const inherited = (Reflect.getMetadata(FIELDS, target) ?? []) as EnvField[];
    const field: EnvField = { variable, property, description, kind, isSecret: rules.isSecret ?? false };
    const others = inherited.filter((known) => known.property !== property);
    Reflect.defineMetadata(FIELDS, [...others, field], target);
    applyDecorators(IsOptional(), ...buildChecks(kind, rules))(target, property);
  };
}

function buildChecks(
  kind: EnvKind,
  { min, max = kind === 'duration' ? MAX_TIMER_MS : undefined }: EnvRules,
): PropertyDecorator[] {
  switch (kind) {
    case 'boolean':
      return [IsBoolean()];
    case 'list':
      return [IsArray()];
    case 'string':
      return [IsString()];
    default:
      return [...(max === undefined ? [] : [Max(max)]), ...(min === undefined ? [] : [Min(min)]), IsInt()];
  }
}

/** The variables of a configuration class, variables of its base classes first. */
export function getEnvFields(type: new () => object): readonly EnvField[] {
  return (Reflect.getMetadata(FIELDS, type.prototype as object) ?? []) as EnvField[];
}
