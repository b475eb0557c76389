import { randomUUID } from 'node:crypto';
import { isObject } from '@broomwagon/contracts';
import { keepListJson } from '@broomwagon/engines';

/** Fields of bodies that have token ids. */
const NAMES = ['input_ids', 'token_ids', 'prompt'];
/** Minimum size of a body that is searched for a list, bytes. */
const MIN_LIST_BYTES = 1_024;
/** Mark in the place of the list in the body; random, so that no client can send the mark. */
const PLACE = randomUUID();
/** Characters of other forms of numbers, which engines do not take as token ids. */
const OTHER_FORMS = ['.', 'e', 'E', '-'];

/**
 * Like `JSON.parse`, but a long list of token ids is parsed apart, and its bytes are kept for the engine.
 * @throws SyntaxError
 */
export function parseBody(bytes: Buffer): unknown {
  return withList(bytes) ?? JSON.parse(bytes.toString('utf8'));
}

/** Parses a body with a long list of token ids; undefined if the object itself has no such list. */
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
      // The text is no list of numbers: the body is parsed as a whole.
    }
  }
  return undefined;
}
