import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { idFault, invalidField, MAX_COMPOSED_ID_BYTES } from '@broomwagon/contracts';
import { readHeaderText } from '../http/headers';

/** Maximum bytes of `X-Request-Id`, so that the ids of choices (`<id>-<index>`) are valid ids too. */
const MAX_HEADER_ID_BYTES = MAX_COMPOSED_ID_BYTES - 8;

/** The id of a request, and whether repeats of the request are recognized by it. */
export interface RequestId {
  id: string;
  /** Whether the id is in the body. Proxies also set `X-Request-Id`, with a new id for each repeat. */
  isOwnId: boolean;
  /** Id of each choice, if the client sends one for each; absent: `<id>-<index>`. */
  choiceIds?: string[];
}

/**
 * The id of a request, from its body, else from `X-Request-Id` if it is valid, else a new id.
 * @param choices highest index of a choice, whose id is `<id>-<index>`; absent: the request has one choice
 * @throws BroomwagonError VALIDATION_FAILED for an id of the body
 */
export function parseRequestId(
  given: unknown,
  field: string,
  headers: IncomingHttpHeaders,
  choices?: number,
): RequestId {
  if (given === undefined || given === '') {
    const header = readHeaderText(headers, 'x-request-id');
    const isId = header !== undefined && idFault(header, MAX_HEADER_ID_BYTES, 'composed') === undefined;
    return { id: isId ? header : randomUUID(), isOwnId: false };
  }
  if (typeof given !== 'string') throw invalidField(field, 'must be a text');
  const fault = idFault(choices === undefined ? given : `${given}-${choices}`, MAX_COMPOSED_ID_BYTES, 'composed');
  if (fault !== undefined) throw invalidField(field, fault);
  return { id: given, isOwnId: true };
}

/**
 * Joins the ids of the prompts of a batch to the id of the request.
 * @param isEachNamed each choice has a prompt of its own
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function parseRequestIds(given: unknown[], field: string, count: number, isEachNamed: boolean): RequestId {
  if (!isEachNamed || given.length !== count || new Set(given).size !== count) {
    throw invalidField(field, 'as a list must have another id for each prompt of a list, with one sample of each');
  }
  for (const [index, id] of given.entries()) {
    const fault = typeof id === 'string' ? idFault(id, MAX_COMPOSED_ID_BYTES, 'composed') : 'must be a text';
    if (fault !== undefined) throw invalidField(`${field}.${index}`, fault);
  }
  return { id: JSON.stringify(given), isOwnId: true, choiceIds: given as string[] };
}
