import { compileRule, type Check } from './compiled-rules';
import { hasTransformations, contractSchemaOf, type ContractClass, type PropertySchema } from './contract-schema';
import { validateFully } from './full-validator';

type LateCheck = (instance: object, value: unknown) => boolean;
interface CompiledProperty {
  required: boolean;
  checks: Check[];
  late: LateCheck[];
  nested?: CompiledValidator<object>;
  isArray: boolean;
}

const MAX_FREE_FORM_DEPTH = 32;
const compiled = new Map<ContractClass, CompiledValidator<object>>();

/** The validator of a DTO class, compiled at its first use. */
export function validatorOf<T extends object>(contract: ContractClass<T>): CompiledValidator<T> {
  let validator = compiled.get(contract);
  if (validator === undefined) {
    validator = new CompiledValidator(contract);
    compiled.set(contract, validator);
  }
  return validator as CompiledValidator<T>;
}

/**
 * Checks a body against a DTO class and returns an instance of it.
 * @throws BroomwagonError VALIDATION_FAILED with the first `field` and all `details: [{field, reason}]`
 */
export function validate<T extends object>(contract: ContractClass<T>, body: unknown): T {
  return validatorOf(contract).validate(body);
}

/**
 * The decorators of a DTO class compiled to closures (0.3 us instead of 20 us). It accepts only what is certainly
 * valid; everything else, wrong or merely unusual, goes to class-validator itself, which alone says what is wrong.
 */
export class CompiledValidator<T extends object> {
  private readonly properties = new Map<string, CompiledProperty>();
  private requiredCount = 0;
  private lateCount = 0;
  private compiledYet = false;
  private unsupported: string | undefined;

  constructor(private readonly contract: ContractClass<T>) {}

  /** Why this class cannot be compiled, or undefined. */
  unsupportedReason(): string | undefined {
    this.compile();
    return this.unsupported;
  }

  /** @throws BroomwagonError VALIDATION_FAILED */
  validate(body: unknown): T {
    return this.accept(body) ?? validateFully(this.contract, body);
  }

  /** The instance when the body is certainly valid, else undefined. */
  accept(body: unknown): T | undefined {
    this.compile();
    if (this.unsupported !== undefined || !isPlainObject(body)) return undefined;
    const instance = new this.contract() as T & Record<string, unknown>;
    const target: Record<string, unknown> = instance;
    let requiredSeen = 0;
    for (const name of Object.keys(body)) {
      const property = this.properties.get(name);
      if (property === undefined) return undefined;
      const value = body[name];
      if (property.required) {
        requiredSeen++;
      } else if (value === null) {
        continue; // Absent, as in the full validator.
      }
      const accepted = acceptValue(property, value);
      if (accepted === undefined) return undefined;
      target[name] = accepted;
    }
    return requiredSeen === this.requiredCount && this.passesLate(instance) ? instance : undefined;
  }

  private passesLate(instance: T & Record<string, unknown>): boolean {
    if (this.lateCount === 0) return true;
    for (const [name, property] of this.properties) {
      const value = instance[name];
      if (!property.required && value === undefined) continue;
      for (const check of property.late) {
        if (!check(instance, value)) return false;
      }
    }
    return true;
  }

  private compile(): void {
    if (this.compiledYet) return;
    this.compiledYet = true;
    if (hasTransformations(this.contract)) this.unsupported = 'transformation';
    for (const schema of contractSchemaOf(this.contract)) this.addProperty(schema);
  }

  private addProperty(schema: PropertySchema): void {
    if (schema.unsupportedReason !== undefined) {
      this.unsupported = `${schema.name}: ${schema.unsupportedReason}`;
      return;
    }
    const property: CompiledProperty = {
      required: !schema.optional,
      checks: [],
      late: [],
      isArray: schema.isArray,
      nested: schema.nested === undefined ? undefined : validatorOf(schema.nested),
    };
    for (const rule of schema.rules) {
      const made = compileRule(rule);
      if ('check' in made) {
        property.checks.push(made.check);
      } else {
        property.late.push(made.late);
        this.lateCount++;
      }
    }
    this.requiredCount += property.required ? 1 : 0;
    this.properties.set(schema.name, property);
  }
}

/** The value as the instance will hold it; undefined when unsupported (JSON has no undefined). */
function acceptValue(property: CompiledProperty, value: unknown): unknown {
  for (const check of property.checks) {
    if (!check(value)) return undefined;
  }
  if (property.nested !== undefined) return acceptNested(property.nested, property.isArray, value);
  if (typeof value === 'object' && value !== null && !isPlainData(value, 0)) return undefined;
  return value;
}

function acceptNested(nested: CompiledValidator<object>, isArray: boolean, value: unknown): unknown {
  if (!isArray) return nested.accept(value);
  if (!Array.isArray(value)) return undefined;
  const items: object[] = [];
  for (const item of value) {
    const accepted = nested.accept(item);
    if (accepted === undefined) return undefined;
    items.push(accepted);
  }
  return items;
}

/** True when class-transformer's copy of the value would equal it: it drops or trips over inherited names. */
function isPlainData(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function';
  if (depth > MAX_FREE_FORM_DEPTH) return false;
  if (Array.isArray(value)) return value.every((item) => isPlainData(item, depth + 1));
  if (!isPlainObject(value)) return false;
  for (const name of Object.keys(value)) {
    if (name in Object.prototype || !isPlainData(value[name], depth + 1)) return false;
  }
  return true;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
