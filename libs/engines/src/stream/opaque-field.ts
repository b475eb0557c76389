import { randomUUID } from 'node:crypto';
import { BroomwagonError } from '@broomwagon/contracts';
import type { StreamStep } from './chunk-reader';
import { OpaqueText } from './opaque-text';

const QUOTE = 0x22;
const COLON = 0x3a;
const SPACE = 0x20;
const BACKSLASH = 0x5c;
/** Maximum bytes of the texts that are kept at the same time. */
const MAX_BYTES = 512 * 1_048_576;
const EMPTY = Buffer.alloc(0);

/**
 * Takes the text of one field out of a stream of JSON before the JSON is parsed: the experts of all tokens can be tens
 * of megabytes of Base64. A mark replaces the text until {@link restore}. A value that is not a text stays in the JSON.
 */
export class OpaqueField {
  private readonly name: Buffer;
  /** Bytes that may begin the name. */
  private rest: Buffer = EMPTY;
  /** The text whose end has not arrived. */
  private open: Buffer[] | undefined;
  /** Bytes of all texts that are kept. */
  private bytes = 0;
  private readonly mark = `opaque-${randomUUID()}-`;
  /** Texts by their numbers, until their event is read. */
  private readonly texts = new Map<string, OpaqueText>();
  private taken = 0;

  /** @param name name of the field, without characters that JSON escapes: in a text its quotes are escaped */
  constructor(name: string) {
    this.name = Buffer.from(`"${name}"`);
  }

  /** @returns the bytes to parse. @throws BroomwagonError ENGINE_PROTOCOL for texts that are too long */
  take(chunk: Buffer): Buffer {
    let bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    this.rest = EMPTY;
    const parsed: Buffer[] = [];
    while (bytes.length > 0) bytes = this.open === undefined ? this.outside(bytes, parsed) : this.inside(bytes, parsed);
    return parsed.length === 1 ? parsed[0]! : Buffer.concat(parsed);
  }

  /** Puts the texts in the place of their marks. */
  restore({ engineFields }: StreamStep): void {
    if (this.texts.size === 0 || engineFields === undefined) return;
    for (const fields of [engineFields.whole, engineFields.pieces]) if (fields) this.restoreIn(fields);
  }

  private restoreIn(fields: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value === 'object' && value !== null) this.restoreIn(value as Record<string, unknown>);
      else if (typeof value === 'string' && value.startsWith(this.mark)) {
        const mark = value.slice(this.mark.length);
        const text = this.texts.get(mark);
        fields[name] = text;
        this.bytes -= text?.length ?? 0;
        this.texts.delete(mark);
      }
    }
  }

  /** @returns the bytes that are left to read */
  private outside(bytes: Buffer, parsed: Buffer[]): Buffer {
    const { name } = this;
    const at = bytes.indexOf(name);
    let value = at < 0 ? bytes.length : at + name.length;
    if (at >= 0) while (bytes[value] === SPACE || bytes[value] === COLON) value += 1;
    if (value === bytes.length) {
      const kept = at < 0 ? findNameStart(name, bytes) : bytes.length - at;
      parsed.push(bytes.subarray(0, bytes.length - kept));
      this.rest = bytes.subarray(bytes.length - kept);
      return EMPTY;
    }
    const isText = bytes[value] === QUOTE && bytes.subarray(at + name.length, value).includes(COLON);
    if (isText) {
      value += 1;
      this.open = [];
    }
    parsed.push(bytes.subarray(0, value));
    return bytes.subarray(value);
  }

  private inside(bytes: Buffer, parsed: Buffer[]): Buffer {
    const open = this.open!;
    let end = bytes.indexOf(QUOTE);
    while (end >= 0 && isEscaped(bytes.subarray(0, end), open)) end = bytes.indexOf(QUOTE, end + 1);
    const part = end < 0 ? bytes : bytes.subarray(0, end);
    this.bytes += part.length;
    if (this.bytes > MAX_BYTES) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `The engine sent fields of more than ${MAX_BYTES} bytes`);
    }
    if (part.length > 0) open.push(part);
    if (end < 0) return EMPTY;
    const mark = String((this.taken += 1));
    this.texts.set(mark, new OpaqueText(open));
    parsed.push(Buffer.from(this.mark + mark));
    this.open = undefined;
    return bytes.subarray(end);
  }
}

/** Whether a quote after these bytes is a character of the text. @param open parts of the text before these bytes */
function isEscaped(bytes: Buffer, open: readonly Buffer[]): boolean {
  let count = 0;
  for (let part = bytes, left = open.length; ; part = open[left]!) {
    const before = part.findLastIndex((byte) => byte !== BACKSLASH);
    count += part.length - 1 - before;
    if (before >= 0 || (left -= 1) < 0) return count % 2 === 1;
  }
}

/** How many bytes at the end are the start of a name. */
function findNameStart(name: Buffer, bytes: Buffer): number {
  for (let length = Math.min(name.length - 1, bytes.length); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(name.subarray(0, length))) return length;
  }
  return 0;
}
