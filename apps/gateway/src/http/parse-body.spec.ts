import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatJson } from '../../../../libs/engines/src/http/list-json';
import { parseBody } from './parse-body';

const LIST = JSON.stringify(Array.from({ length: 400 }, (_, index) => index * 1_000));
/** Pieces of JSON and of almost JSON around a list that is long enough to be parsed apart. */
// prettier-ignore
const piece = fc.constantFrom(
  '{', '}', '[', ']', ',', ':', ' ', '\\', '"', '"x"', 'null', '1', '{"a":', '\\"input_ids"', '"input\\u005fids"',
  '"input_ids"', '"input_ids":', '"token_ids":', '"prompt":', '"__proto__":', '"ü[\u{1f600}]"', '"text [1, 2] "',
  LIST, `${LIST.slice(0, -1)},1.0]`, `${LIST.slice(0, -1)},]`, `[${LIST},[1]]`, `"${LIST}"`,
);
const field = fc.tuple(fc.constantFrom('"a"', '"input_ids"', '"prompt"', '"token_ids"', '"a\\"input_ids"'), piece);
const body = fc.oneof(
  fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.array(field, { maxLength: 4 }).map((fields) => `{${fields.map((pair) => pair.join(': ')).join(',')}}`),
  fc
    .array(field, { maxLength: 3 })
    .map((fields) => `{"b":{${fields.map((pair) => pair.join(':')).join()}},"prompt":${LIST}}`),
);

function listsIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return [...(Array.isArray(value) ? [value] : []), ...Object.values(value).flatMap(listsIn)];
}

/** The value, or a mark that the text is not JSON. */
function toOutcome(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch (error) {
    return (error as Error).name;
  }
}

describe('parseBody', () => {
  it('accepts and refuses the same texts as JSON.parse, with the same values', () => {
    fc.assert(
      fc.property(body, (text) => {
        expect(toOutcome(() => parseBody(Buffer.from(text)))).toEqual(toOutcome(() => JSON.parse(text)));
      }),
      { numRuns: 1_000 },
    );
  });

  it.each(['input_ids', 'token_ids', 'prompt'])('keeps the bytes of the list %s of the body itself', (name) => {
    const text = `{"a": "ü", "${name}" : ${LIST}, "n": 1}`;
    const value = parseBody(Buffer.from(text)) as Record<string, unknown>;
    expect(value).toEqual(JSON.parse(text));
    // The bytes are kept, and not written again.
    expect(formatJson({ list: value[name] })).toEqual(Buffer.from(`{"list":${LIST}}`));
  });

  it.each([
    ['a list within another field', `{"a": {"input_ids": ${LIST}}}`],
    ['the first of two', `{"input_ids": ${LIST}, "input_ids": [1]}`],
    ['numbers of another form', `{"input_ids": ${LIST.slice(0, -1)}, 1.0]}`],
    ['a short list', '{"input_ids": [1, 2, 3]}'],
    ['a list in a text', `{"input_ids": "${LIST}"}`],
  ])('does not keep %s', (_, text) => {
    const value = parseBody(Buffer.from(text));
    expect(value).toEqual(JSON.parse(text));
    expect(listsIn(value).map((list) => typeof formatJson({ list }))).not.toContain('object');
  });
});
