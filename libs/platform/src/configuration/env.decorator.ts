import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';

/** Kind of a variable, by which its text is parsed. */
export type EnvKind = 'string' | 'number' | 'boolean' | 'list' | 'duration';

/** Rules for the value of a field of a configuration class, in addition to its type. */
export interface EnvRules {
  min?: number;
  max?: number;
  /** A secret value is never printed. */
  isSecret?: boolean;
}

export interface EnvField {
  variable: string;
  property: string;
  description: string;
  kind: EnvKind;
  isSecret: boolean;
}

/** The longest timer of Node, 24 days. A longer timer ends at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** Maximum of settings for ages, for which no timer waits: ten years. */
export const MAX_AGE_MS = 315_360_000_000;

const FIELDS = Symbol('broomwagon.env-fields');
const KIND_OF_TYPE = new Map<unknown, EnvKind>([
  [Number, 'number'],
  [Boolean, 'boolean'],
  [Array, 'list'],
]);

/**
 * Reads a field of a configuration class from an environment variable, and checks the value by its type and `rules`.
 * Numbers are whole. Commas separate a list. A number in `..._MS` is a duration, for example `250`, `250ms`, `30s`,
 * `5m` or `2h`, of at most 24 days if `rules` have no maximum. A field without a default is optional.
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

/** Returns the variables of a configuration class, variables of base classes first. */
export function getEnvFields(type: new () => object): readonly EnvField[] {
  return (Reflect.getMetadata(FIELDS, type.prototype as object) ?? []) as EnvField[];
}
