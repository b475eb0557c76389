import { BroomwagonError, cutText, MAX_REF_LENGTH, POOL_PATTERN } from '@broomwagon/contracts';

export type PayloadDriver = 'redis' | 'file';

/** Name of one payload, as a reference spells it. */
export interface PayloadName {
  pool: string;
  job: string;
  owner: string;
  name: string;
}

/** Pattern of encoded ids (decisions/0037), which never contain the separator. */
const ID = /^[A-Za-z0-9._:%-]+$/;
/** Character between the parts, and in place of the `/` in an owner: unreserved in URLs, and part of no id. */
const SEPARATOR = '~';

/**
 * Spells a reference: `<driver>~<pool>~<job>~<owner>~<name>`, with `~` for the `/` of the owner. An owner that begins
 * with its job (a requestId does) is written without the job, as an empty part, so that the longest ids still fit.
 * @throws BroomwagonError VALIDATION_FAILED for parts that are no ids or a reference over {@link MAX_REF_LENGTH}
 */
export function formatPayloadRef(driver: PayloadDriver, { pool, job, owner, name }: PayloadName): string {
  const relative = owner.startsWith(`${job}/`) ? owner.slice(job.length) : owner;
  const ref = [driver, pool, job, ...relative.split('/'), name].join(SEPARATOR);
  const named = parsePayloadRef(driver, ref);
  if (named.pool !== pool || named.job !== job || named.owner !== owner || named.name !== name)
    throw invalid(ref, 'ref');
  return ref;
}

/** Parses a reference of the driver. @throws BroomwagonError VALIDATION_FAILED, with the field, for any other text */
export function parsePayloadRef(driver: PayloadDriver, ref: string, field = 'ref'): PayloadName {
  const [named, pool, job, ...rest] = ref.split(SEPARATOR);
  const name = rest.pop();
  if (named !== driver || pool === undefined || job === undefined || name === undefined || rest.length === 0) {
    throw invalid(ref, field);
  }
  const owner = rest[0] === '' ? [job, ...rest.slice(1)] : rest;
  const valid = POOL_PATTERN.test(pool) && [job, name, ...owner].every((part) => ID.test(part));
  if (!valid || ref.length > MAX_REF_LENGTH) throw invalid(ref, field);
  return { pool, job, owner: owner.join('/'), name };
}

function invalid(ref: string, field: string): BroomwagonError {
  const message = `${field}: not a payload reference of this store: ${cutText(ref, 80)}`;
  return new BroomwagonError('VALIDATION_FAILED', message, { field });
}
