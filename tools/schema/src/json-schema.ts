export type Json = Record<string, unknown>;
/** JSON Schemas by name. */
export type Components = Record<string, Json>;

/** Where a component stands in the published document, in AsyncAPI and in OpenAPI. */
export const COMPONENTS = '#/components/schemas/';

/** The component that a schema refers to; empty for none. */
export function getComponent({ $ref }: Json): string {
  return typeof $ref === 'string' && $ref.startsWith(COMPONENTS) ? $ref.slice(COMPONENTS.length) : '';
}

/** A schema and all that stand within it. */
export function parts(schema: unknown): Json[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return [schema as Json, ...Object.values(schema).flatMap(parts)];
}
