import { encodeComposedId, encodeId, ID_RULE, OPERATIONS } from '@broomwagon/contracts';
import { contractSchemaOf, type ContractClass } from './contract-schema';

type Fields = Record<string, unknown>;
type Step = (body: Fields) => void;

/** Bodies that services receive; what they send to workers holds ids as their callers chose them. */
const REQUESTS = new Set<ContractClass>(Object.values(OPERATIONS).map(({ request }) => request));
const steps = new Map<ContractClass, Step[]>();

/** Encodes the ids of a request that was checked, in place: services use ids only in this form (decisions/0037). */
export function encodeIds<T extends object>(contract: ContractClass<T>, body: T): T {
  if (REQUESTS.has(contract)) run(contract, body as Fields);
  return body;
}

function run(contract: ContractClass, body: Fields): void {
  let known = steps.get(contract);
  if (known === undefined) {
    known = stepsOf(contract);
    steps.set(contract, known);
  }
  for (const step of known) step(body);
}

function stepsOf(contract: ContractClass): Step[] {
  return contractSchemaOf(contract).flatMap(({ name, rules, nested }): Step[] => {
    const rule = rules.find((one) => one.name === ID_RULE);
    const encode = rule?.constraints[1] === 'composed' ? encodeComposedId : encodeId;
    const visit =
      rule !== undefined
        ? (value: unknown) => encode(value as string)
        : nested !== undefined
          ? (value: unknown) => (run(nested, value as Fields), value)
          : undefined;
    if (visit === undefined) return [];
    return [
      (body) => {
        const value = body[name];
        if (value !== undefined) body[name] = Array.isArray(value) ? value.map(visit) : visit(value);
      },
    ];
  });
}
