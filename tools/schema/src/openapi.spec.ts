import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Components, getComponent, type Json, parts } from './json-schema';

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
      const { content } = (responses['200'] ?? responses['201']) as { content: Record<string, { schema: Json }> };
      return { name: `${method} ${path}`, schemas: Object.values(content).map(({ schema }) => schema) };
    }),
  );
  expect(replies.filter((reply) => reply.schemas.length !== 1 || reply.schemas.some(isShapeless))).toEqual([]);
});

it('has a limit and a cursor for every reply that has a cursor, and a limit for every list', () => {
  const unlimited = Object.entries(document.paths).flatMap(([path, { get }]) => {
    const { parameters = [], responses } = (get ?? {}) as { parameters?: Json[]; responses?: Components };
    const { content } = (responses?.['200'] ?? {}) as { content?: Record<string, { schema: Json }> };
    const schema = content?.['application/json']?.schema;
    const { properties = {} } = (schema && schemas[getComponent(schema)]) ?? {};
    const names = new Set(parameters.map(({ name }) => name));
    const isList = (properties as Components)[path.split('/').at(-1)!]?.type === 'array';
    const isPaged = Object.hasOwn(properties as object, 'cursor');
    return (isPaged && !names.has('cursor')) || ((isPaged || isList) && !names.has('limit')) ? [path] : [];
  });
  expect(unlimited).toEqual([]);
});

it('has the statuses of each operation by number, and the id of the request in each of its responses', () => {
  const { headers, responses: shared } = document.components as never as Record<string, Record<string, Json>>;
  for (const methods of Object.values(document.paths)) {
    for (const { responses } of Object.values(methods)) {
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403', '429', '500', '503']));
      expect(Object.keys(responses).filter((status) => !/^\d{3}$/.test(status))).toEqual([]);
      const resolved = Object.values(responses).map((one) => shared![String(one.$ref).split('/').at(-1)!] ?? one);
      for (const response of resolved) expect(Object.keys(response.headers as object)).toContain('X-Request-Id');
    }
  }
  expect(Object.keys(headers!)).toEqual(expect.arrayContaining(['ETag', 'Link', 'Location', 'Retry-After']));
});
