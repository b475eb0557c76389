import { randomBytes } from 'node:crypto';
import type { GroupId, JobId, RequestId, Epoch } from './scalars';

/** Longest id a caller may choose, in bytes of UTF-8. */
export const MAX_ID_BYTES = 128;
/** Longest composed or correlation id: `/` and `~` of the job and the group take two bytes each in a request id. */
export const MAX_COMPOSED_ID_BYTES = 2 * 2 * MAX_ID_BYTES + 8;

export const POOL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const CONTROL = /[\p{Cc}\p{Cs}]/u;
/** One token of a NATS subject. */
const TOKEN = /^[^\s.*>]+$/u;

/** Name of the validation rule of ids. The constraints of the rule are the maximum bytes and the kind of the id. */
export const ID_RULE = 'isWireId';
/** `plain`: may be a part of a composed id. `composed`: `/` may separate parts. `token`: plain, and one NATS token. */
export type IdKind = 'plain' | 'composed' | 'token';

/** Returns the fault of a text as an id; undefined for a valid id. */
export function idFault(text: string, mostBytes = MAX_ID_BYTES, kind: IdKind = 'plain'): string | undefined {
  if (text === '') return 'must not be empty';
  if (text.length > mostBytes || (text.length * 3 > mostBytes && Buffer.byteLength(text) > mostBytes)) {
    return `must be at most ${mostBytes} bytes`;
  }
  if (CONTROL.test(text)) return 'must not hold control characters or half characters';
  if (kind === 'token' && !TOKEN.test(text)) return 'must be one token of a NATS subject: without spaces and . * >';
  return undefined;
}

/**
 * Composes the id of one sample of a group: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job
 * and group, as in a JSON pointer.
 */
export function buildRequestId(job: JobId, groupId: GroupId, sampleIndex: number): RequestId {
  return `${idPart(job)}/${idPart(groupId)}/${sampleIndex}`;
}

/** Escapes an id, as a part of a composed id. */
export function idPart(id: string): string {
  return id.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Returns the id that {@link idPart} has escaped. */
export function idOfPart(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

const RANDOM_LENGTH = 12;

/** Creates a unique epoch: the time in milliseconds and 62 random bits, both in base 36. */
export function newEpoch(): Epoch {
  const random = (randomBytes(8).readBigUInt64BE() % 36n ** BigInt(RANDOM_LENGTH)).toString(36);
  return Date.now().toString(36) + random.padStart(RANDOM_LENGTH, '0');
}
