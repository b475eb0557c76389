import { readFileSync } from 'node:fs';
import * as contracts from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import { getSchema, type ContractClass } from './json-schema';
import { validate, type FieldError } from './validator';

type Json = Record<string, unknown>;

const document = JSON.parse(readFileSync('docs/protocol/asyncapi.json', 'utf8')) as {
  components: { schemas: Record<string, Json> };
};
const { schemas } = document.components;
const SAMPLES: Record<string, unknown> = {
  string: 'text',
  integer: 12_345,
  number: 0.5,
  boolean: true,
  object: { a: 1 },
  array: [],
};
/** Values of these types are of that type too. */
const ALSO: Record<string, string[]> = { number: ['integer'] };

/** All classes of the protocol, with the classes nested in them. */
const classes = Object.values(contracts).filter(
  (one): one is ContractClass & typeof one => typeof one === 'function' && schemas[one.name]?.type === 'object',
);

/** The type in docs/protocol/asyncapi.json, base classes included. */
function documentedType(contract: string, property: string): string | undefined {
  const { properties = {}, allOf = [] } = schemas[contract] as {
    properties?: Record<string, { type?: string }>;
    allOf?: { $ref?: string; properties?: Record<string, { type?: string }> }[];
  };
  const known = [properties, ...allOf.map((part) => part.properties ?? {})].find((part) => property in part);
  if (known !== undefined) return known[property]!.type;
  const bases = allOf.flatMap(({ $ref }) => ($ref === undefined ? [] : [$ref.split('/').at(-1)!]));
  return bases.map((base) => documentedType(base, property)).find((type) => type !== undefined);
}

function listReasons(contract: ContractClass, name: string, value: unknown): string[] {
  try {
    validate(contract, { [name]: value });
  } catch (error) {
    const details = (error as contracts.BroomwagonError).details as FieldError[];
    return details.filter(({ field }) => field === name).map(({ reason }) => reason);
  }
  return [];
}

describe('a value of the wrong type', () => {
  it('is reported by its type first, and by nothing else', () => {
    const body = { acquireId: 'a', requestId: 12345, workerId: 'w', workerEpoch: 'e1' };
    let error: unknown;
    try {
      validate(contracts.AcquireRequest, body);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({
      message: 'requestId: must be a string',
      field: 'requestId',
      details: [{ field: 'requestId', reason: 'must be a string' }],
    });
  });

  it('is reported by its type alone on every field of every contract', () => {
    const wrong: string[] = [];
    let checked = 0;
    const fields = classes.flatMap((contract) =>
      Object.entries(getSchema(contract).properties).map(([name, schema]) => ({ contract, name, schema })),
    );
    for (const { contract, name, schema } of fields) {
      // Fields of several types: affinityBreakMargin, and lists of texts or numbers.
      const type = schema.properties ? 'object' : documentedType(contract.name, name);
      if (type === undefined) continue;
      for (const [other, value] of Object.entries(SAMPLES)) {
        if (other === type || ALSO[type]?.includes(other)) continue;
        checked++;
        const reasons = listReasons(contract, name, value);
        // The document has `number` for some integers.
        const names = type === 'number' ? 'number|integer' : type;
        if (reasons.length !== 1 || !new RegExp(`^must be an? (${names})$`).test(reasons[0]!)) {
          wrong.push(`${contract.name}.${name} = ${JSON.stringify(value)}: ${JSON.stringify(reasons)}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(checked).toBeGreaterThan(1_000);
  });

  it('names the type of the items of a list', () => {
    const { request } = contracts.OPERATIONS['request.abort'];
    expect(listReasons(request, 'requestIds', ['a', 7])).toEqual(['each value must be a string']);
  });
});
