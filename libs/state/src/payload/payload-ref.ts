import { BroomwagonError, MAX_ID_LENGTH, MAX_REF_LENGTH } from '@broomwagon/contracts';

export const PAYLOAD_DRIVERS = ['redis', 'file'] as const;
export type PayloadDriver = (typeof PAYLOAD_DRIVERS)[number];

/** The name of one payload, as a reference spells it. */
export interface PayloadName {
  job: string;
  owner: string;
  name: string;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;
/** Stands for `/` of an owner and between the parts: unreserved in URLs and part of no id. */
const SEPARATOR = '~';

/**
 * Spells a reference: `<driver>~<job>~<owner>~<name>`, with `~` for the `/` of the owner. An owner that begins with
 * its job (a requestId does) is written without it, as an empty part, so that the longest ids still fit.
 * @throws BroomwagonError VALIDATION_FAILED for parts that are no ids or a reference over 512 characters
 */
export function formatPayloadRef(driver: PayloadDriver, { job, owner, name }: PayloadName): string {
  const relative = owner.startsWith(`${job}/`) ? owner.slice(job.length) : owner;
  const ref = [driver, job, ...relative.split('/'), name].join(SEPARATOR);
  const named = parsePayloadRef(driver, ref);
  if (named.job !== job || named.owner !== owner || named.name !== name) throw invalid(ref);
  return ref;
}

/** Reads a reference back. @throws BroomwagonError VALIDATION_FAILED when it is none of this driver */
export function parsePayloadRef(driver: PayloadDriver, ref: string): PayloadName {
  const [named, job, ...rest] = ref.split(SEPARATOR);
  const name = rest.pop();
  if (named !== driver || job === undefined || name === undefined || rest.length === 0) throw invalid(ref);
  const owner = rest[0] === '' ? [job, ...rest.slice(1)] : rest;
  const valid = [job, name, ...owner].every((part) => part.length <= MAX_ID_LENGTH && ID.test(part));
  if (!valid || ref.length > MAX_REF_LENGTH) throw invalid(ref);
  return { job, owner: owner.join('/'), name };
}

function invalid(ref: string): BroomwagonError {
  return new BroomwagonError('VALIDATION_FAILED', `Not a payload reference of this store: ${ref.slice(0, 80)}`, {
    field: 'ref',
  });
}
