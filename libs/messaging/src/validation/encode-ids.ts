import { encodeComposedId, encodeId, OPERATIONS } from '@broomwagon/contracts';
import { getSchema, type ContractClass, type Schema } from './json-schema';

type Fields = Record<string, unknown>;
type Step = (body: Fields) => void;

/** Classes with encoded ids: requests to services. Commands to workers keep ids as callers chose them. */
const REQUESTS = new Set<ContractClass>(Object.values(OPERATIONS).map(({ request }) => request));
const steps = new Map<Schema, Step[]>();

/** Encodes the ids of a validated request, in place. Services use only encoded ids (decisions/0037). */
export function encodeIds<T extends object>(contract: ContractClass<T>, body: T): T {
  if (REQUESTS.has(contract)) run(getSchema(contract), body as Fields);
  return body;
}

function run(schema: Schema, body: Fields): void {
  let known = steps.get(schema);
  if (known === undefined) {
    known = Object.entries(schema.properties!).flatMap(([name, property]) =>
      buildSteps(name, property.items ?? property),
    );
    steps.set(schema, known);
  }
  for (const step of known) step(body);
}

function buildSteps(name: string, schema: Schema): Step[] {
  const encode = schema.idKind === 'composed' ? encodeComposedId : encodeId;
  const visit =
    schema.idKind !== undefined
      ? (value: unknown) => encode(value as string)
      : schema.properties !== undefined
        ? (value: unknown) => (run(schema, value as Fields), value)
        : undefined;
  if (visit === undefined) return [];
  return [
    (body) => {
      const value = body[name];
      if (value !== undefined) body[name] = Array.isArray(value) ? value.map(visit) : visit(value);
    },
  ];
}
