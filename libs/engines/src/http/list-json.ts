import { BroomwagonError } from '@broomwagon/contracts';

/** JSON of lists, which is sent as it arrived: to write 100,000 numbers again costs milliseconds. */
const texts = new WeakMap<readonly number[], Buffer>();

/** Keeps the JSON of a list of numbers that is not changed afterwards. */
export function keepListJson(list: readonly number[], json: Buffer): void {
  texts.set(list, json);
}

/**
 * The JSON of a body, with the kept JSON of one of its lists.
 * @throws BroomwagonError ENGINE_REJECTED if the body is nested too deeply: `JSON.parse` has no limit, `JSON.stringify`
 *   has
 */
export function formatJson(body: object): string | Buffer {
  try {
    return formatKeptList(body);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new BroomwagonError('ENGINE_REJECTED', 'The request is nested too deeply', { cause: error });
  }
}

function formatKeptList(body: object): string | Buffer {
  const kept = Object.entries(body).find(([, value]) => Array.isArray(value) && texts.has(value));
  if (kept === undefined) return JSON.stringify(body);
  const [name, list] = kept as [string, number[]];
  const others = JSON.stringify({ ...body, [name]: undefined });
  const end = others === '{}' ? others.slice(1) : `,${others.slice(1)}`;
  return Buffer.concat([Buffer.from(`{${JSON.stringify(name)}:`), texts.get(list)!, Buffer.from(end)]);
}
