import { BroomwagonError, invalidField, isBroomwagonError, LIMITS, SamplingParameters } from '@broomwagon/contracts';
import { validate } from '@broomwagon/messaging';

/**
 * Sampling parameters under our names, and further parameters that are passed to the engine unread.
 * @param names our names by the names of the dialect
 * @param parent field of the body with the parameters; empty for the body itself
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function splitSampling(
  fields: Record<string, unknown>,
  names: Record<string, keyof SamplingParameters>,
  logprobs: boolean,
  parent = 'sampling_params',
) {
  const known: Record<string, unknown> = logprobs ? { logprobs } : {};
  // The object has no prototype: a client may name a field `__proto__`.
  const unknown = Object.create(null) as Record<string, unknown>;
  if (Object.keys(fields).length === 0) return { known: known as SamplingParameters, unknown };
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(names, name)) unknown[name] = value;
    else known[names[name]!] = name === 'stop' && typeof value === 'string' ? [value] : value;
  }
  try {
    validate(SamplingParameters, known);
  } catch (error) {
    if (!isBroomwagonError(error, 'VALIDATION_FAILED')) throw error;
    const [ours = '', ...rest] = (error.field ?? '').split('.');
    const name = Object.entries(names).find(([, one]) => one === ours)?.[0] ?? ours;
    throw invalidField([...(parent === '' ? [] : [parent]), name, ...rest].join('.'), error.message);
  }
  if (Buffer.byteLength(JSON.stringify(known)) > LIMITS.samplingBytes) {
    throw invalidField(parent || 'stop', `sampling parameters must be at most ${LIMITS.samplingBytes} bytes`);
  }
  return { known: known as SamplingParameters, unknown };
}

/** @throws BroomwagonError VALIDATION_FAILED */
export function parseObject(value: unknown, field: string): Record<string, unknown> {
  if (value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidField(field, 'must be an object');
  return withoutNulls(value as Record<string, unknown>);
}

/** @throws BroomwagonError VALIDATION_FAILED also if the value is absent */
export function requiredObject(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidField(field, 'must be an object');
  return value as Record<string, unknown>;
}

/** @throws BroomwagonError VALIDATION_FAILED also if the list is absent */
export function listOfObjects(value: unknown, field: string): Record<string, unknown>[] {
  if (!Array.isArray(value)) throw invalidField(field, 'must be a list');
  return value.map((one, index) => requiredObject(one, `${field}.${index}`));
}

/** @throws BroomwagonError VALIDATION_FAILED also if the text is absent */
export function requiredText(value: unknown, field: string): string {
  if (typeof value === 'string') return value;
  throw invalidField(field, 'must be a text');
}

/** Like `JSON.stringify`. @throws BroomwagonError VALIDATION_FAILED if the value is nested too deeply */
export function jsonText(value: object, field?: string): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new BroomwagonError('VALIDATION_FAILED', 'The body is nested too deeply', { field });
  }
}

/** Removes fields that are null: a null counts as absent. */
export function withoutNulls(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.values(fields).includes(null)
    ? Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
    : fields;
}

export function isCount(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

/** False for a value that requests nothing: absent, 0, false, an empty text, list or object. */
export function isSet(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** Decodes a header as UTF-8: Node reads each byte of a header as a character. */
export function decodeUtf8(header: string): string {
  return Buffer.from(header, 'latin1').toString('utf8');
}
