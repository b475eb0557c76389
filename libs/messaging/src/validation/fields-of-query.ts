import { invalidField } from '@broomwagon/contracts';
import type { JsonObject } from '../wire';
import { type ContractClass, type Schema, getSchema } from './json-schema';

/**
 * Converts query parameters to the fields of a request, with the types of the class. A wrong value, or an unknown name,
 * stays unchanged, and the validator refuses it.
 * @throws BroomwagonError VALIDATION_FAILED for two values of a field that is no list
 */
export function fieldsOfQuery(contract: ContractClass, query: URLSearchParams): JsonObject {
  const { properties } = getSchema(contract);
  const fields = [...new Set(query.keys())].map((name) => {
    const schema = Object.hasOwn(properties, name) ? properties[name]! : {};
    const texts = query.getAll(name);
    if (schema.type === 'array') return [name, texts.map((text) => parseValue(schema.items ?? {}, text))] as const;
    if (texts.length > 1) throw invalidField(name, 'is given twice');
    return [name, parseValue(schema, texts[0]!)] as const;
  });
  return Object.fromEntries(fields);
}

function parseValue({ type }: Schema, text: string): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = (type === 'integer' || type === 'number') && text.trim() !== '' && Number.isFinite(Number(text));
  return isNumber ? Number(text) : text;
}
