/** A value that differs from event to event. */
export interface VaryingField {
  /** Names from the event down to the value. */
  path: readonly string[];
  /** Matches the whole value in JSON. */
  form: RegExp;
}

/** Forms of values; a list has numbers and null, or lists of numbers and null. */
export const STRING = /"(?:[^"\\]|\\.)*"/y;
export const INTEGER = /\d+/y;
export const LIST = /\[(?:[^[\]"{}]|\[[^[\]"{}]*\])*\]/y;

const ZERO = 0x30;
const NINE = 0x39;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
/** Maximum digits of a whole number that is certainly exact. */
const MAX_DIGITS = 15;

/**
 * The text of an event without the values that vary. If a later text is equal around the values, it is the same event
 * with other values, and only the values are parsed. Nothing is accepted that `JSON.parse` would read in another way:
 * the text around the values is compared character by character, and each value is one value of JSON.
 */
export class RepeatedEvent {
  private constructor(
    /** Text before, between and behind the values. */
    private readonly parts: readonly string[],
    /** Which field each value has, in the order of the text. */
    private readonly order: readonly number[],
  ) {}

  /**
   * @param text text of a valid object
   * @param fields may be missing in the event
   * @returns undefined if the places of the values are not certain
   */
  static of(text: string, fields: readonly VaryingField[]): RepeatedEvent | undefined {
    const values: { field: number; start: number; end: number }[] = [];
    for (const [field, { path, form }] of fields.entries()) {
      const name = `"${path.at(-1)}":`;
      const at = text.indexOf(name);
      if (at < 0) continue;
      let start = at + name.length;
      while (text.charCodeAt(start) === SPACE) start += 1;
      form.lastIndex = start;
      if (!form.test(text)) return undefined;
      values.push({ field, start, end: form.lastIndex });
    }
    if (values.length === 0) return undefined;
    values.sort((one, other) => one.start - other.start);
    const edges = [0, ...values.flatMap(({ start, end }) => [start, end]), text.length];
    const parts = Array.from({ length: values.length + 1 }, (_, index) =>
      text.slice(edges[2 * index], edges[2 * index + 1]),
    );
    const event = new RepeatedEvent(
      parts,
      values.map(({ field }) => field),
    );
    return event.isAt(fields) ? event : undefined;
  }

  /** Whether values in these places belong to the fields: another field may have the same name. */
  private isAt(fields: readonly VaryingField[]): boolean {
    const { parts, order } = this;
    const text = parts.reduce((before, part, index) => `${before}"probe ${order[index - 1]}"${part}`);
    try {
      const event: unknown = JSON.parse(text);
      return order.every((field) => valueAt(event, fields[field]!.path) === `probe ${field}`);
    } catch {
      return false;
    }
  }

  /** The JSON of the value of each field, if the text is this event with other values. */
  parseValues(text: string): string[] | undefined {
    const { parts, order } = this;
    const last = order.length;
    let position = parts[0]!.length;
    if (!text.startsWith(parts[0]!) || !text.endsWith(parts[last]!)) return undefined;
    const values: string[] = [];
    for (let index = 1; index <= last; index++) {
      const part = parts[index]!;
      const end = index === last ? text.length - part.length : text.indexOf(part, position);
      if (end < position) return undefined;
      values[order[index - 1]!] = text.slice(position, end);
      position = end + part.length;
    }
    return values;
  }
}

/** Parses a string, like `JSON.parse`. @throws SyntaxError */
export function parseString(json: string): unknown {
  const end = json.length - 1;
  if (end < 1 || json.charCodeAt(0) !== QUOTE || json.charCodeAt(end) !== QUOTE) return JSON.parse(json);
  for (let index = 1; index < end; index++) {
    const code = json.charCodeAt(index);
    if (code < SPACE || code === QUOTE || code === BACKSLASH) return JSON.parse(json);
  }
  // A slice would keep the whole event in memory, also in the text of a response: V8 copies texts that it joins.
  return ` ${json.slice(1, end)}`.slice(1);
}

/** A whole number of plain digits; undefined for anything else. */
export function parseWholeNumber(json: string): number | undefined {
  const { length } = json;
  if (length === 0 || length > MAX_DIGITS || (json.charCodeAt(0) === ZERO && length > 1)) return undefined;
  let value = 0;
  for (let index = 0; index < length; index++) {
    const code = json.charCodeAt(index);
    if (code < ZERO || code > NINE) return undefined;
    value = 10 * value + code - ZERO;
  }
  return value;
}

function valueAt(event: unknown, path: readonly string[]): unknown {
  return path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], event);
}
