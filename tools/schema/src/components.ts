import { join } from 'node:path';
import { createGenerator } from 'ts-json-schema-generator';
import { addRules } from './class-rules';
import { getComponent, COMPONENTS, type Components, type Json, parts } from './json-schema';

const SCALARS = new Set<unknown>(['string', 'number', 'integer', 'boolean']);

/**
 * JSON Schemas (2020-12) of TypeScript types and of all types they refer to, by type name. Types, optional fields,
 * defaults and descriptions come from the source and its doc comments; bounds and patterns from the decorators.
 * @param root folder of the repository
 * @param received types that services receive: an unknown field is refused
 * @param sent types that services send: a later version may add fields
 */
export function componentSchemas(root: string, received: readonly string[], sent: readonly string[]): Components {
  const generator = createGenerator({
    path: join(root, 'libs/contracts/src/index.ts'),
    tsconfig: join(root, 'tsconfig.json'),
    skipTypeCheck: true,
    additionalProperties: true,
  });
  const found: Components = {};
  for (const type of new Set([...received, ...sent])) Object.assign(found, generator.createSchema(type).definitions);
  const components = tidied(found);
  describeFields(components);
  addRules(components);
  closeRequests(components, received, sent);
  return components;
}

/** References and names as the document has them; aliases of scalars and maps are written out where they are used. */
function tidied(found: Components): Components {
  const aliases: Components = {};
  const kept: Components = {};
  for (const [name, schema] of Object.entries(found)) (isAlias(schema) ? aliases : kept)[name] = schema;
  const tidy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(tidy);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, ...own } = value as Json & { $ref?: string };
    const fields = Object.fromEntries(Object.entries(own).map(([key, one]) => [key, tidy(one)]));
    if (typeof fields.description === 'string') fields.description = plainText(fields.description);
    if ($ref === undefined) return fields;
    const name = decodeURIComponent($ref.replace('#/definitions/', ''));
    return {
      ...(aliases[name] ? (tidy(aliases[name]) as Json) : { $ref: COMPONENTS + componentName(name) }),
      ...fields,
    };
  };
  return Object.fromEntries(
    Object.keys(kept)
      .map((name) => [componentName(name), tidy(kept[name]) as Json] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** A field without a comment gets the comment of its type; a field of an unnamed object, the comment of the object. */
function describeFields(components: Components): void {
  const describe = (schema: Json, inherited?: unknown): void => {
    for (const field of Object.values((schema.properties ?? {}) as Components)) {
      field.description ??= components[getComponent(field)]?.description ?? inherited;
      for (const part of parts(field)) describe(part, field.description);
    }
  };
  for (const component of Object.values(components)) describe(component);
}

function isAlias(schema: Json): boolean {
  const isScalar = SCALARS.has(schema.type) && !('enum' in schema || 'const' in schema);
  return isScalar || ('additionalProperties' in schema && !('properties' in schema));
}

/** Generic instances get names with `<` and `,`; a component name may not hold them. */
function componentName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9._-]+/g, '_');
}

function plainText(description: unknown): string {
  return String(description)
    .replaceAll(/\s*\{@link\s+(\S+)\s*\}\s?/g, ' `$1`')
    .trim();
}

/** Closes objects that only requests have; objects that replies have too are closed where a request refers to them. */
function closeRequests(components: Components, received: readonly string[], sent: readonly string[]): void {
  const inReplies = reachable(components, sent);
  for (const name of reachable(components, received)) {
    if (inReplies.has(name)) continue;
    for (const part of parts(components[name])) {
      const isShared = inReplies.has(getComponent(part)) && components[getComponent(part)]!.type === 'object';
      if (isShared) part.unevaluatedProperties = false;
      else if (part.type === 'object') part.additionalProperties ??= false;
    }
  }
}

function reachable(components: Components, roots: readonly string[]): Set<string> {
  const seen = new Set<string>();
  const visit = (name: string): void => {
    if (name === '' || seen.has(name)) return;
    seen.add(name);
    for (const part of parts(components[name])) visit(getComponent(part));
  };
  roots.forEach(visit);
  return seen;
}
