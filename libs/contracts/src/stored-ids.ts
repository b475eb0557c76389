import { idOfPart, idPart } from './ids';

/**
 * Ids as the services store them: in keys, packed records, references and composed ids. Messages have ids as callers
 * chose them. A service encodes the ids of a request after the validation, and decodes the ids of each message that it
 * sends (decisions/0037). All code in between may treat ids as plain texts.
 */

/** Ids of these characters need no encoding. A composed id also has `/` between its parts. */
const SAFE = /^[A-Za-z0-9._:-]*$/;
const SAFE_COMPOSED = /^[A-Za-z0-9._:/-]*$/;
const UNSAFE = /[^A-Za-z0-9._:/-]+/g;
const ENCODED = /(?:%[0-9A-F]{2})+/g;

/** Encodes an id that may be part of a composed id, with its `/`. */
export function encodeId(id: string): string {
  return SAFE.test(id) ? id : percent(idPart(id));
}

/** The inverse of {@link encodeId}. */
export function decodeId(stored: string): string {
  return SAFE.test(stored) ? stored : idOfPart(unpercent(stored));
}

/** Encodes an id that may be composed: each `/` stays. */
export function encodeComposedId(id: string): string {
  return SAFE_COMPOSED.test(id) ? id : percent(id);
}

/** The inverse of {@link encodeComposedId}. */
export function decodeComposedId(stored: string): string {
  return SAFE_COMPOSED.test(stored) ? stored : unpercent(stored);
}

function percent(text: string): string {
  return text.replace(UNSAFE, (unsafe) =>
    Array.from(Buffer.from(unsafe, 'utf8'), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}

function unpercent(text: string): string {
  return text.replace(ENCODED, (encoded) => Buffer.from(encoded.replaceAll('%', ''), 'hex').toString('utf8'));
}

const PLAIN = new Set(
  (
    'abortId acquireId claimId planId syncId transferId registrationId takeoverId job jobs roundId openRoundId ' +
    'groupId groupIds workerId serverId boundServerId boundTo namedServer fromServerId toServerId targetServerId ' +
    'excludeServers avoidServers tag saving restoring unknown dropped notQueued missing extra different unproven'
  ).split(' '),
);
const COMPOSED = new Set(['requestId', 'requestIds', 'leaseId', 'sessionId', 'parentSessionId', 'promptId', 'id']);
/** Fields with texts for people, which may contain ids. */
const MESSAGES = new Set(['message']);
/** Fields with an object that has ids as names. */
const TABLES = new Set(['servers']);
/** Fields with free contents of callers and engines. */
const FREE_FORM = new Set(['prompt', 'sampling', 'labels', 'engineFields', 'messages', 'capabilities', 'settings']);

/** Fields of replies, events and commands that hold ids; a test finds fields that are missing here. */
export const ID_FIELDS: ReadonlySet<string> = new Set([...PLAIN, ...COMPOSED]);

type Decode = (stored: string) => string;

/** Writes a message as JSON, with ids as callers chose them. */
export function wireText(body: unknown): string {
  const text = JSON.stringify(body ?? {});
  return text.includes('%') ? JSON.stringify(wireValue(body)) : text;
}

/**
 * Returns the fields of a log record with ids as callers chose them. All other texts are treated as messages for
 * people.
 */
export function wireRecord(fields: Record<string, unknown>): Record<string, unknown> {
  return wireFields(fields, wireMessage);
}

/** @param otherwise decodes texts of all other fields */
function wireValue(value: unknown, decode?: Decode, otherwise?: Decode): unknown {
  if (typeof value === 'string') return decode === undefined ? value : decode(value);
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (Array.isArray(value)) return value.map((item) => wireValue(item, decode, otherwise));
  return wireFields(value, otherwise);
}

function wireFields(value: object, otherwise?: Decode): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    if (FREE_FORM.has(name)) fields[name] = field;
    else if (TABLES.has(name) && !Array.isArray(field)) fields[name] = wireTable(field);
    else fields[name] = wireValue(field, findDecoder(name) ?? otherwise, otherwise);
  }
  return fields;
}

function findDecoder(name: string): Decode | undefined {
  if (PLAIN.has(name)) return decodeId;
  if (COMPOSED.has(name)) return decodeComposedId;
  return MESSAGES.has(name) ? wireMessage : undefined;
}

function wireTable(table: unknown): unknown {
  if (typeof table !== 'object' || table === null) return table;
  return Object.fromEntries(Object.entries(table).map(([id, field]) => [decodeId(id), wireValue(field)]));
}

/** Parts of a text that may be encoded ids. */
const WORD = /[A-Za-z0-9._:%/-]+/g;

/** Returns a message for people with ids as callers chose them. Texts that no service has encoded stay unchanged. */
export function wireMessage(message: string): string {
  return message.includes('%') ? message.replace(WORD, wireWord) : message;
}

function wireWord(word: string): string {
  if (!word.includes('%')) return word;
  // The word is a composed id, or several ids with `/` between them.
  if (word.includes('/')) return encodeComposedId(unpercent(word)) === word ? unpercent(word) : word;
  return encodeId(decodeId(word)) === word ? decodeId(word) : word;
}
