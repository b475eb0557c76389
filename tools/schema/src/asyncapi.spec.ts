import { readFileSync } from 'node:fs';
import addFormats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020';
import { describe, expect, it } from 'vitest';
import { OPERATIONS } from '@broomwagon/contracts';
import { getSchema } from '../../../libs/messaging/src/validation/json-schema';
import { COMPONENTS, getComponent, parts, type Components, type Json } from './json-schema';

// Compared with the sources by `npm run schema:check`.
const document = JSON.parse(readFileSync('docs/protocol/asyncapi.json', 'utf8')) as Json & {
  channels: Record<string, { messages: Record<string, { payload: Json }> }>;
  components: { schemas: Components };
};
const { channels, components } = document;
const { schemas } = components;
const getFields = (name: string) => (schemas[name]!.properties ?? {}) as Components;

describe('docs/protocol/asyncapi.json', () => {
  it('describes every type and every field', () => {
    const missing = Object.entries(schemas).flatMap(([name, schema]) =>
      parts({ [name]: schema }).flatMap((part) => [
        ...(schema.description ? [] : [name]),
        ...Object.entries((part.properties ?? {}) as Components)
          .filter(([, field]) => !field.description)
          .map(([field]) => `${name}: ${field}`),
      ]),
    );
    expect(missing, 'write a doc comment on the field of the DTO').toEqual([]);
  });

  it('gives fields to every request that has some, and a type to every field', () => {
    const requests = Object.values(OPERATIONS).map(({ request }) => request);
    const empty = requests.filter(({ name }) => Object.keys(getFields(name)).length === 0);
    expect(empty.filter((request) => Object.keys(getSchema(request).properties).length > 0)).toEqual([]);
    const typed = ['type', '$ref', 'anyOf', 'allOf', 'enum', 'const'];
    const untyped = Object.entries(schemas).flatMap(([name, schema]) =>
      parts({ [name]: schema }).flatMap(({ properties = {} }) =>
        Object.entries(properties as Components)
          .filter(([, field]) => !typed.some((keyword) => keyword in field))
          .map(([field]) => `${name}: ${field}`),
      ),
    );
    // An error may have any details.
    expect(untyped).toEqual(['WireError: details']);
  });

  it('has all components it refers to, and no component without a reference to it', () => {
    const refs = new Set(parts(document).flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : [])));
    const target = (ref: string) =>
      ref
        .slice(2)
        .split('/')
        .reduce((at, key) => at?.[key] as Json, document as Json);
    expect([...refs].filter((ref) => target(ref) === undefined)).toEqual([]);
    const roots = new Set(['SegmentPayload', 'PoolEvent']);
    const unused = Object.keys(schemas).filter((name) => !refs.has(COMPONENTS + name));
    expect(unused.filter((name) => !roots.has(name))).toEqual([]);
  });

  it('holds JSON Schemas of 2020-12', () => {
    // No value is checked: fast to compile goes before fast to run.
    const ajv = new Ajv2020({ strict: true, strictTypes: false, inlineRefs: false, code: { optimize: false } });
    addFormats(ajv);
    ajv.addVocabulary(['components']).addSchema({ $id: 'protocol', components });
    for (const name of Object.keys(schemas)) ajv.compile({ $ref: `protocol${COMPONENTS}${name}` });
  });

  it('has the fields that a request inherits', () => {
    expect(Object.keys(getFields('ReleaseRequest'))).toEqual([
      'leaseId',
      'acquireId',
      'outcome',
      'tokens',
      'retryAfterMs',
    ]);
    expect(Object.keys(getFields('CommitWeightsRequest'))).toEqual(Object.keys(getFields('RollbackWeightsRequest')));
    expect(getFields('CommitWeightsRequest').syncId).toMatchObject({ type: 'string', minLength: 1, maxLength: 128 });
  });

  it('closes requests and the objects in them, and leaves replies open', () => {
    for (const { request } of Object.values(OPERATIONS))
      expect(schemas[request.name]!.additionalProperties).toBe(false);
    expect(schemas.GroupSubmission!.additionalProperties).toBe(false);
    expect(getFields('SaveRequest').segment!.unevaluatedProperties).toBe(false);
    expect(schemas.Segment).not.toHaveProperty('additionalProperties');
    expect(schemas.LeaseGrant).not.toHaveProperty('additionalProperties');
  });

  it('has a channel for every operation and every event', () => {
    expect(Object.keys(OPERATIONS).filter((name) => !channels[name] || !channels[`${name}.reply`])).toEqual([]);
    const events = (schemas.PoolEvent!.anyOf as Json[]).map(getComponent);
    const payloads = Object.values(channels).map(({ messages }) => messages.event?.payload ?? {});
    const published = new Set(payloads.map(getComponent));
    expect(events.filter((name) => !published.has(name))).toEqual([]);
  });
});
