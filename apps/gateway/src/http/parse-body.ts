import { randomUUID } from 'node:crypto';
import { isObject } from '@broomwagon/contracts';
import { keepListJson } from '@broomwagon/engines';

/** Fields of bodies that have token ids. */
const NAMES = ['input_ids', 'token_ids', 'prompt'];
/** Shorter lists are not worth the search, bytes. */
const MIN_LIST_BYTES = 1_024;
/** Stands in the place of the list; random, so that no client can send it. */
const PLACE = randomUUID();
/** Engines take numbers of other forms for no token ids. */
const OTHER_FORMS = ['.', 'e', 'E', '-'];

/**
 * As `JSON.parse`. A long list of token ids is parsed apart, and its bytes are kept for the engine.
 * @throws SyntaxError
 */
export function parseBody(bytes: Buffer): unknown {
  return withList(bytes) ?? JSON.parse(bytes.toString('utf8'));
}

/** Undefined if there is no such list in the object itself. */
function withList(bytes: Buffer): Record<string, unknown> | undefined {
  for (const name of bytes.length < MIN_LIST_BYTES ? [] : NAMES) {
    const key = bytes.indexOf(`"${name}"`);
    const start = key < 0 ? -1 : bytes.indexOf('[', key);
    const end = start < 0 ? -1 : bytes.indexOf(']', start) + 1;
    if (end - start < MIN_LIST_BYTES) continue;
    const json = bytes.subarray(start, end);
    if (OTHER_FORMS.some((form) => json.includes(form))) continue;
    try {
      const list = JSON.parse(json.toString('latin1')) as number[];
      const body = JSON.parse(`${bytes.toString('utf8', 0, start)}"${PLACE}"${bytes.toString('utf8', end)}`) as unknown;
      if (!isObject(body) || body[name] !== PLACE) continue;
      keepListJson(list, json);
      body[name] = list;
      return body;
    } catch {
      // Something else than a list of numbers: the body is parsed as a whole.
    }
  }
  return undefined;
}
