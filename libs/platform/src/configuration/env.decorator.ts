/** How the text of a variable becomes a value. */
export type EnvKind = 'string' | 'number' | 'boolean' | 'list' | 'duration';

/** What a field of a configuration class says about its variable. */
export interface EnvOptions {
  description: string;
  /** Never printed. */
  secret?: boolean;
  /**
   * Default: by the type of the field. `list` is separated by commas; `duration` is in milliseconds and takes
   * `250`, `250ms`, `30s`, `5m` or `2h`.
   */
  kind?: EnvKind;
}

/** One variable of a configuration class. */
export interface EnvField extends EnvOptions {
  variable: string;
  property: string;
  kind: EnvKind;
}

const FIELDS = Symbol('broomwagon.env-fields');
const KIND_OF_TYPE = new Map<unknown, EnvKind>([
  [Number, 'number'],
  [Boolean, 'boolean'],
  [Array, 'list'],
]);

/** Reads a field of a configuration class from an environment variable. */
export function Env(variable: string, options: EnvOptions): PropertyDecorator {
  return (target, property) => {
    const type: unknown = Reflect.getMetadata('design:type', target, property);
    const kind = options.kind ?? KIND_OF_TYPE.get(type) ?? 'string';
    const inherited = (Reflect.getMetadata(FIELDS, target) ?? []) as EnvField[];
    const field: EnvField = { ...options, kind, variable, property: String(property) };
    const others = inherited.filter((known) => known.property !== field.property);
    Reflect.defineMetadata(FIELDS, [...others, field], target);
  };
}

/** The variables of a configuration class, those of its base classes first. */
export function envFieldsOf(type: new () => object): readonly EnvField[] {
  return (Reflect.getMetadata(FIELDS, type.prototype as object) ?? []) as EnvField[];
}
