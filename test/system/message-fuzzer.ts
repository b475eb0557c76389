import { readFileSync } from 'node:fs';

/** The part of JSON schema that docs/protocol uses. */
export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
}
/** A published document: the schema of the request of each operation, and the schemas that they name. */
export interface Requests {
  operations: Record<string, Schema>;
  schemas: Record<string, Schema>;
}

/** Requests of docs/protocol/asyncapi.json. */
export function messageRequests(): Requests {
  const { channels, components } = JSON.parse(readFileSync('docs/protocol/asyncapi.json', 'utf8')) as {
    channels: Record<string, { messages?: { request?: { payload: Schema } } }>;
    components: { schemas: Record<string, Schema> };
  };
  const operations = Object.entries(channels).flatMap(([name, { messages }]) =>
    messages?.request === undefined ? [] : [[name, messages.request.payload] as const],
  );
  return { operations: Object.fromEntries(operations), schemas: components.schemas };
}

/** Names that every object of JavaScript has: an index with one of them finds a value that nobody has stored. */
const OBJECT_NAMES = Object.getOwnPropertyNames(Object.prototype);
const HOSTILE_TEXTS = [
  '',
  ' ',
  '\ud800',
  'a\udc00b',
  '😀'.repeat(40),
  'x'.repeat(5_000),
  '\u0000',
  '\r\n',
  '{}',
  '}{:*>.',
  ...OBJECT_NAMES,
  '../../etc/passwd',
  "'; return redis.call('FLUSHALL') --",
  '18446744073709551616',
  '99999999999999999999',
  '9999999999999999999',
  '-1',
  '1e400',
  'NaN',
  '%s%d',
  'http://[::1',
];
/** Ids that trainers use, and ids that would be confused with others without their encoding. */
const HOSTILE_IDS = [
  'a/b',
  'a~b',
  'a~1b',
  '_x',
  'run 42 @ lr=1e-5 #3',
  '{x}',
  '%2F',
  '🚀',
  '..',
  'a|b',
  '*',
  'a,b=c;d',
  ...OBJECT_NAMES,
];
/** Pattern of an id in the schema. */
const ID_PATTERN = String.raw`^[^\u0000-\u001f\u007f-\u009f]+$`;
const HALVES = ['\ud83d', '\udc00', '\udc00\ud83d'];
const CURSORS = ['0', '7', '4096', '9999999999999999999', '18446744073709551616', '99999999999999999999', '-1', 'x'];
const HOSTILE_NUMBERS = [-1, 0, 0.5, 1e14, 1e15, 2 ** 53, 2 ** 64, 1e21, 1e308, -1e308];
/** Maximum number of values of a field that are kept to be sent again. */
const KNOWN_PER_FIELD = 24;
/** Maximum of valid waits and deadlines, so that the fuzzer does not wait. */
const LONGEST_MS = 40;

/**
 * Makes messages for every operation from the published schema: mostly right ones, which use names from earlier replies
 * and so reach far into the state, and wrong and hostile ones. The same seed makes the same messages from the same
 * replies.
 */
export class MessageFuzzer {
  readonly operations: string[];
  private readonly known = new Map<string, unknown[]>();
  private state: number;

  constructor(
    seed: number,
    private readonly requests: Requests,
  ) {
    this.state = seed;
    this.operations = Object.keys(requests.operations);
  }

  /** The bytes of a message for an operation. */
  message(operation: string): string {
    if (this.chance(0.01)) return this.pick(['', 'null', '[]', '{', '{"a":', '"x"', '{"a":'.repeat(20_000)]);
    // Most messages are right in all fields: one wrong field hides all that comes after validation.
    const wrongness = this.pick([0, 0, 0, 0.05, 0.3]);
    const body = this.value('', this.requests.operations[operation]!, wrongness, 0);
    return JSON.stringify(body)?.replaceAll('"__number__"', '1e400') ?? '';
  }

  /** The fields of a request, about half of the time with wrong ones. */
  fields(operation: string): Record<string, unknown> {
    return this.object(this.requests.operations[operation]!, this.pick([0, 0, 0.05, 0.3]), 0);
  }

  /** Stores the values of a reply for later messages. */
  learn(reply: unknown, depth = 0): void {
    if (typeof reply !== 'object' || reply === null || depth > 5) return;
    for (const [name, value] of Object.entries(reply)) {
      if (typeof value === 'string' || typeof value === 'number') this.remember(name, value);
      else this.learn(value, depth + 1);
    }
  }

  remember(field: string, value: unknown): void {
    const values = this.known.get(field) ?? [];
    if (values.includes(value)) return;
    this.known.set(field, [...values.slice(1 - KNOWN_PER_FIELD), value]);
  }

  private value(field: string, given: Schema, wrongness: number, depth: number): unknown {
    const schema = this.resolve(given);
    if (this.chance(wrongness)) return this.wrong(depth);
    if (schema.anyOf !== undefined) return this.value(field, this.pick(schema.anyOf), wrongness, depth);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return this.pick(schema.enum);
    if (field === 'cursor' && schema.type === 'string') return this.pick(CURSORS);
    const isFree = schema.type === 'string' && schema.pattern === undefined;
    const known = isFree ? undefined : this.known.get(field);
    if (known !== undefined && this.chance(0.7)) return this.pick(known);
    switch (schema.type) {
      case 'string':
        return isFree && this.chance(0.5) ? this.freeText() : this.text(field, schema);
      case 'boolean':
        return this.chance(0.5);
      case 'integer':
      case 'number':
        return this.number(field, schema);
      case 'array': {
        const least = schema.minItems ?? 0;
        const count = Math.min(schema.maxItems ?? 4, least + this.below(4));
        return Array.from({ length: count }, () =>
          this.value(field.replace(/s$/, ''), schema.items ?? {}, wrongness, depth + 1),
        );
      }
      default:
        return schema.properties === undefined ? this.anything(depth) : this.object(schema, wrongness, depth);
    }
  }

  private object(
    { properties = {}, required = [] }: Schema,
    wrongness: number,
    depth: number,
  ): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    for (const [name, schema] of Object.entries(properties)) {
      const needed = required.includes(name);
      if (needed ? this.chance(wrongness / 2) : !this.chance(0.35)) continue;
      // Python clients may send null for an absent field.
      made[name] = !needed && this.chance(0.2) ? null : this.value(name, schema, wrongness, depth + 1);
    }
    if (this.chance(wrongness / 3)) made[this.pick(HOSTILE_TEXTS)] = 1;
    return made;
  }

  private text(field: string, { pattern }: Schema): string {
    if (pattern === ID_PATTERN && this.chance(0.3)) return this.pick(HOSTILE_IDS);
    const objectName = this.chance(0.1) ? this.pick(OBJECT_NAMES) : undefined;
    if (objectName !== undefined && pattern !== undefined && new RegExp(pattern).test(objectName)) return objectName;
    if (field === 'endpoint') return `http://127.0.0.1:${this.below(5) + 1}`;
    if (field === 'data') return Buffer.from('x'.repeat(this.below(200))).toString('base64');
    return `${field.slice(0, 8)}-${this.below(6)}`;
  }

  /** A text for a field without a pattern. Services copy such a text into JSON, keys and replies to others. */
  private freeText(): string {
    return this.chance(0.5) ? `cut ${this.pick(HALVES)} short` : this.pick(HOSTILE_TEXTS);
  }

  private number(field: string, { minimum = 0, maximum = 1e6, type }: Schema): number {
    if (field.endsWith('Ms')) return minimum + this.below(LONGEST_MS);
    if (this.chance(0.05)) return maximum;
    if (this.chance(0.1)) return minimum;
    const value = minimum + this.random() * Math.min(8, maximum - minimum);
    return type === 'integer' || maximum > 100 ? Math.floor(value) : value;
  }

  private wrong(depth: number): unknown {
    switch (this.below(5)) {
      case 0:
        return this.pick(HOSTILE_TEXTS);
      case 1:
        return this.pick(HOSTILE_NUMBERS);
      case 2:
        return this.pick([null, true, [], {}, [[]], [null], '__number__']);
      case 3:
        return this.anything(depth);
      default:
        return JSON.parse(
          this.pick(['{"__proto__":{"a":1}}', '{"constructor":1}', '{"toString":null}', '[[[[[[{}]]]]]]']),
        );
    }
  }

  private anything(depth: number): unknown {
    if (depth > 6) return this.pick(HOSTILE_TEXTS);
    const entries = Array.from({ length: this.below(4) }, (_, index) => [
      this.chance(0.2) ? this.pick(HOSTILE_TEXTS) : `k${index}`,
      this.pick<unknown>([null, 1, 0.7, true, 'a', this.pick(HOSTILE_TEXTS), [1, null], this.anything(depth + 2)]),
    ]);
    return Object.fromEntries(entries);
  }

  private resolve(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1);
    return name === undefined ? schema : (this.requests.schemas[name] ?? {});
  }

  private pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
  private below(bound: number): number {
    return Math.floor(this.random() * bound);
  }
  private chance(share: number): boolean {
    return this.random() < share;
  }
  /** Mulberry32. */
  private random(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}
