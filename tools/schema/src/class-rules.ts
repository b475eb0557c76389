import { defaultMetadataStorage } from 'class-transformer/cjs/storage';
import { targetConstructorToSchema } from 'class-validator-jsonschema';
import * as contracts from '@broomwagon/contracts';
import { getComponent, type Components, type Json } from './json-schema';

type Meta = { constraints: never[] };
/** Spelled as ranges, since few engines of regular expressions know `\p{Cc}`. */
const CONTROL = String.raw`\u0000-\u001f\u007f-\u009f`;

/** Rules that class-validator-jsonschema does not know, or describes less exactly than they are. */
const CONVERTERS = {
  min: ({ constraints }: Meta) => ({ minimum: constraints[0] }),
  max: ({ constraints }: Meta) => ({ maximum: constraints[0] }),
  isUrl: { format: 'uri' },
  isBase64: { contentEncoding: 'base64' },
  // Bytes are not characters, but no text of more characters has fewer bytes.
  [contracts.ID_RULE]: ({ constraints: [mostBytes, kind] }: { constraints: [number, contracts.IdKind] }) => ({
    minLength: 1,
    maxLength: mostBytes,
    pattern: kind === 'token' ? `^[^\\s.*>${CONTROL}]+$` : `^[^${CONTROL}]+$`,
  }),
  isMargin: ({ constraints: [maximum] }: Meta) => ({
    anyOf: [{ type: 'integer', minimum: 0, maximum }, { const: 'never' }],
  }),
  isLabels: ({ constraints: [maxProperties, name, value] }: { constraints: [number, RegExp, RegExp] }) => ({
    maxProperties,
    propertyNames: { pattern: name.source },
    additionalProperties: { type: 'string', pattern: value.source },
  }),
};

/** Adds the rules of decorators to the components of DTO classes. @throws Error where decorator and type disagree */
export function addRules(components: Components): void {
  for (const contract of Object.values(contracts)) {
    if (typeof contract !== 'function' || components[contract.name] === undefined) continue;
    const component = components[contract.name]!;
    const rules = targetConstructorToSchema(contract, {
      classTransformerMetadataStorage: defaultMetadataStorage,
      additionalConverters: CONVERTERS as never,
    }) as Json;
    const properties = (component.properties ?? {}) as Components;
    const named = (one: Json) => JSON.stringify([one.required ?? []].flat().toSorted());
    if (named(component) !== named(rules)) {
      throw new Error(`${contract.name}: required by decorators: ${named(rules)}, by types: ${named(component)}`);
    }
    for (const [field, rule] of Object.entries((rules.properties ?? {}) as Components)) {
      properties[field] = withRule(properties[field]!, rule, components, `${contract.name}.${field}`);
    }
  }
}

/** The type stays the source's but for integers, which TypeScript does not know. */
function withRule(property: Json, rule: Json, components: Components, where: string): Json {
  const { type, enum: allowed, items, anyOf, $ref: _, ...bounds } = rule;
  if (anyOf) return { anyOf, description: property.description };
  const target = components[getComponent(property)] ?? property;
  const values = target.enum ?? ('const' in target ? [target.const] : undefined);
  if (allowed && JSON.stringify([allowed].flat().toSorted()) !== JSON.stringify([values].flat().toSorted())) {
    throw new Error(`${where}: the decorator allows ${String(allowed)}, the type ${String(values)}`);
  }
  return {
    ...property,
    ...(type === 'integer' ? { type } : {}),
    ...bounds,
    ...(items && property.items ? { items: withRule(property.items as Json, items as Json, components, where) } : {}),
  };
}
