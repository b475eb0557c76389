import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { BroomwagonError } from './errors';
import { decodeComposedId, decodeId, encodeComposedId, encodeId, ID_FIELDS, wireMessage, wireText } from './stored-ids';
import { idFault, MAX_ID_BYTES, buildRequestId } from './ids';

const HOSTILE = [
  'a/b',
  'a~b',
  'a~1b',
  '_x',
  'run 42 @ lr=1e-5 #3',
  '{x}',
  '%2F',
  'a%2Fb',
  '🚀',
  '..',
  '*',
  '@1',
  'a|b,c;d',
];
const id = fc
  .oneof(
    fc.constantFrom(...HOSTILE),
    fc
      .array(fc.constantFrom('/', '~', '%', '2', 'F', 'E', '0', '1', ':', '|', ' ', 'a'), {
        minLength: 1,
        maxLength: 8,
      })
      .map((all) => all.join('')),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
  )
  .filter((text) => idFault(text) === undefined);
const index = fc.nat(200);

it('brings every id back, in an alphabet that separates nothing', () => {
  fc.assert(
    fc.property(id, (text) => {
      expect(encodeId(text)).toMatch(/^[A-Za-z0-9._:%-]+$/);
      expect(decodeId(encodeId(text))).toBe(text);
      expect(encodeComposedId(text)).toMatch(/^[A-Za-z0-9._:%/-]+$/);
      expect(decodeComposedId(encodeComposedId(text))).toBe(text);
    }),
    { numRuns: 2_000 * inject('runsFactor') },
  );
});

it('leaves the ids alone that need no encoding', () => {
  for (const text of ['run-42', 'prompt_7', 'a.b:c', '_x', '..']) expect(encodeId(text)).toBe(text);
  expect(encodeComposedId('job/group/3')).toBe('job/group/3');
});

it('composes request ids that never collide, and that a service composes alike of encoded parts', () => {
  const sample = fc.tuple(id, id, index);
  fc.assert(
    fc.property(sample, sample, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      const [job, group, position] = one;
      const requestId = buildRequestId(...one);
      const stored = `${encodeId(job)}/${encodeId(group)}/${position}`;
      // A lease is named by its acquire, behind a number.
      const lease = `7.${encodeId(job)}`;
      expect({
        isSame: requestId === buildRequestId(...other),
        encoded: encodeComposedId(requestId),
        decoded: decodeComposedId(stored),
        parts: stored.split('/').length,
        lease: encodeComposedId(decodeComposedId(lease)),
      }).toEqual({ isSame, encoded: stored, decoded: requestId, parts: 3, lease });
    }),
    { numRuns: 2_000 * inject('runsFactor') },
  );
});

it('writes messages with ids as the callers chose them, and leaves free texts alone', () => {
  const group = encodeId('a/b %2F');
  const body = {
    claims: [
      { job: encodeId('j 1'), groupId: group, requestId: `${encodeId('j 1')}/${group}/0`, prompt: { text: '%20' } },
    ],
    servers: { [encodeId('s 1')]: { endpoint: 'http://h/%20' } },
    unknown: [group],
    ref: 'redis~p~a%20b~g~n',
  };
  expect(JSON.parse(wireText(body))).toEqual({
    claims: [{ job: 'j 1', groupId: 'a/b %2F', requestId: 'j 1/a~1b %2F/0', prompt: { text: '%20' } }],
    servers: { 's 1': { endpoint: 'http://h/%20' } },
    unknown: ['a/b %2F'],
    ref: 'redis~p~a%20b~g~n',
  });
  const error = new BroomwagonError('REQUEST_NOT_FOUND', `There is no request ${encodeId('j 1')}/g/0`);
  expect(wireMessage(error.message)).toBe('There is no request j 1/g/0');
  const results = { results: [{ error: error.toWire() }] };
  expect(JSON.parse(wireText(results))).toMatchObject({
    results: [{ error: { message: 'There is no request j 1/g/0' } }],
  });
  expect(wireMessage(`There is no job ${encodeId('a/b %41')}: open it`)).toBe('There is no job a/b %41: open it');
  for (const text of ['100% of %41', 'x%20y/%41', '%zz']) expect(wireMessage(text)).toBe(text);
});

it('refuses ids that are too long in bytes, empty, or hold control characters or half characters', () => {
  expect(idFault('🚀'.repeat(MAX_ID_BYTES / 4))).toBeUndefined();
  expect(idFault(`${'🚀'.repeat(MAX_ID_BYTES / 4)}x`)).toMatch(/128 bytes/);
  for (const text of ['', 'a\nb', 'a\u0000', '\u0085', '\ud800', 'x'.repeat(129)]) expect(idFault(text)).toBeDefined();
  for (const text of ['a.b', 'a b', 'a*', '>']) expect(idFault(text, MAX_ID_BYTES, 'token')).toMatch(/one token/);
  expect(idFault('node-1@rack=2#3/4', MAX_ID_BYTES, 'token')).toBeUndefined();
});

/** Fields of replies that are texts and no ids. */
const OTHER_TEXTS =
  'alarm attempt bound boundServerEpoch branch cacheSalt check code cursor data dialect digest domain endpoint engineFinishReason epoch field fromEpoch generation ' +
  'kind lacks listedAs means message mode model models needs nextPolicy pauseModes policy pool pools promptRef reason ref refusal resumedBy ' +
  'serverEpoch stamp state stop targetEpoch toEpoch trainerEpoch version via workerEpoch workerKind workerKinds traceparent app replicaId level';

it('lists every text field of every reply and every command as an id or as none', () => {
  const { schemas } = (
    JSON.parse(readFileSync('docs/protocol/asyncapi.json', 'utf8')) as {
      components: { schemas: Record<string, Schema> };
    }
  ).components;
  interface Schema {
    $ref?: string;
    type?: string;
    enum?: unknown[];
    const?: unknown;
    properties?: Record<string, Schema>;
    items?: Schema;
    anyOf?: Schema[];
    additionalProperties?: Schema | boolean;
  }
  const resolved = (schema: Schema = {}) => schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
  const isText = (schema: Schema) => {
    const { type, enum: one, const: constant } = resolved(schema);
    return type === 'string' && one === undefined && constant === undefined;
  };
  const [names, seen] = [new Set<string>(), new Set<Schema>()];
  const visit = (given: Schema): void => {
    const schema = resolved(given);
    if (seen.has(schema)) return;
    seen.add(schema);
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      if (isText(field) || (field.items !== undefined && isText(field.items))) names.add(name);
      visit(field);
    }
    for (const part of schema.anyOf ?? []) visit(part);
    if (schema.items !== undefined) visit(schema.items);
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties);
  };
  const replies = Object.keys(schemas).filter((name) => /(Reply|Status|Grant|Summary|Command)$/.test(name));
  for (const name of replies) visit(schemas[name]!);
  const others = new Set(OTHER_TEXTS.split(' '));
  const unlisted = [...names].filter((name) => !ID_FIELDS.has(name) && !others.has(name));
  expect(unlisted, 'add ids to ID_FIELDS of stored-ids.ts, other texts to OTHER_TEXTS of this file').toEqual([]);
  expect(names.size).toBeGreaterThan(50);
});
