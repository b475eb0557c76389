import { setImmediate as nextTurn } from 'node:timers/promises';
import { OpaqueText } from '@broomwagon/engines';

const BACKSLASH = 0x5c;
const PADDING = 0x3d;
const EMPTY = Buffer.alloc(0);

/** Bytes [from, to) of a decoded Base64 text. */
export interface ByteRange {
  text: OpaqueText;
  from: number;
  to: number;
}

/** Number of bytes that a Base64 text decodes to; undefined if it is no Base64, or if its JSON has escapes. */
export function computeByteLength(text: OpaqueText): number | undefined {
  const { parts, length } = text;
  if (length % 4 !== 0 || parts.some((part) => part.includes(BACKSLASH))) return undefined;
  const end = Buffer.concat(parts.slice(-2)).subarray(-2);
  return (length / 4) * 3 - end.filter((character) => character === PADDING).length;
}

/** First bytes of a decoded Base64 text: at least `count`, or the whole text. */
export function readFirstBytes({ parts }: OpaqueText, count: number): Buffer {
  const needed = Math.ceil(count / 3) * 4;
  let [last, length] = [0, 0];
  for (; last < parts.length && length < needed; last += 1) length += parts[last]!.length;
  return decoded(Buffer.concat(parts.slice(0, last)).subarray(0, needed));
}

/**
 * Joins several ranges to one Base64 text. A part of some 64 KiB is written in each turn of the event loop; the first
 * range is reused unchanged if it is at the start of its text.
 * @param header bytes before all ranges
 */
export async function joinedBase64(ranges: readonly ByteRange[], header: Buffer = EMPTY): Promise<OpaqueText> {
  const parts: Buffer[] = [];
  let rest = header;
  const [first] = ranges;
  let written = 0;
  if (first?.from === 0 && header.length === 0) {
    written = Math.floor(first.to / 3) * 3;
    parts.push(...sliceCharacters(first.text, (written / 3) * 4));
  }
  for (const range of ranges) {
    for (const bytes of readBytes({ ...range, from: range.from + written })) {
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const whole = all.length - (all.length % 3);
      parts.push(Buffer.from(all.toString('base64', 0, whole), 'latin1'));
      rest = all.subarray(whole);
      await nextTurn();
    }
    written = 0;
  }
  return new OpaqueText([...parts, Buffer.from(rest.toString('base64'), 'latin1')]);
}

/** The first characters of a text, not copied. */
function sliceCharacters({ parts }: OpaqueText, count: number): Buffer[] {
  const found: Buffer[] = [];
  let left = count;
  for (const part of parts) {
    if (left <= 0) break;
    found.push(part.subarray(0, left));
    left -= part.length;
  }
  return found;
}

/** The bytes of a range, part by part. */
function* readBytes({ text, from, to }: ByteRange): Generator<Buffer> {
  /** Number of decoded bytes before `quad`, the characters of an incomplete group of four. */
  let position = 0;
  let quad: Buffer = EMPTY;
  for (const part of text.parts) {
    const characters = quad.length === 0 ? part : Buffer.concat([quad, part]);
    const whole = characters.length - (characters.length % 4);
    quad = characters.subarray(whole);
    const next = position + (whole / 4) * 3;
    if (next > from && position < to) {
      const bytes = decoded(characters.subarray(0, whole)).subarray(Math.max(0, from - position), to - position);
      if (bytes.length > 0) yield bytes;
    }
    position = next;
  }
}

function decoded(characters: Buffer): Buffer {
  return Buffer.from(characters.toString('latin1'), 'base64');
}
