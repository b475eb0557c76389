import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Components, type Json, parts } from './json-schema';

// Compared with the sources by `npm run schema:check`.
const document = JSON.parse(readFileSync('docs/protocol/openapi.json', 'utf8')) as Json & {
  paths: Record<string, Record<string, { responses: Components }>>;
  components: { schemas: Components };
};
const { schemas } = document.components;
const SHAPES = ['properties', 'additionalProperties', 'allOf', 'anyOf', 'oneOf', 'enum', 'const', '$ref'];
/** True for a schema that allows objects and names none of their fields: a generated client cannot read them. */
const isShapeless = (schema: Json): boolean =>
  (schema.type ?? 'object') === 'object' && SHAPES.every((shape) => !schema[shape]);

it('has no type without fields', () => {
  expect(Object.keys(schemas).filter((name) => isShapeless(schemas[name]!))).toEqual([]);
  expect(parts(document).filter((part) => part.type === 'object' && isShapeless(part))).toEqual([]);
});

it('has a schema with fields for every reply', () => {
  const replies = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => {
      const { content } = responses['200'] as { content: Record<string, { schema: Json }> };
      return { name: `${method} ${path}`, schemas: Object.values(content).map(({ schema }) => schema) };
    }),
  );
  expect(replies.filter((reply) => reply.schemas.length !== 1 || reply.schemas.some(isShapeless))).toEqual([]);
});
