import 'reflect-metadata';
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { type BroomwagonError, findPromptFault, LIMITS, type Prompt, IsId, IsName } from '@broomwagon/contracts';
import { type FieldError, validate } from '@broomwagon/messaging';
import { IsObject, IsOptional } from 'class-validator';
import { splitLines } from '../jsonl/lines';
import { UsageError } from '../usage-error';
import type { PromptRecord } from './prompt-record';

/** Maximum size of a prompt, bytes of its JSON: the capacity of a payload. */
export const MAX_PROMPT_BYTES = LIMITS.payloadChunkBytes * LIMITS.payloadChunks;
const SHOWN_PROBLEMS = 10;

/**
 * Reads and checks all prompts before anything is started.
 * @param source a path, or `-` for standard input
 * @throws UsageError every problem with its line number (the first ten are shown)
 */
export async function readPrompts(source: string): Promise<PromptRecord[]> {
  const name = source === '-' ? 'standard input' : source;
  const stream = source === '-' ? process.stdin : createReadStream(source);
  try {
    return await readPromptLines(stream, name);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`cannot read the prompts: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Reads and checks all prompts of a stream. @param name name of the stream in error messages */
export async function readPromptLines(stream: Readable, name: string): Promise<PromptRecord[]> {
  const records: PromptRecord[] = [];
  const lineOfId = new Map<string, number>();
  const problems: string[] = [];
  let number = 0;
  for await (const bytes of splitLines(stream)) {
    number += 1;
    const text = decodeText(bytes, number);
    if (text === undefined) {
      problems.push(`line ${number}: not UTF-8`);
      continue;
    }
    if (text.trim() === '') continue;
    const parsed = parsePromptLine(text, number);
    if (Array.isArray(parsed)) {
      problems.push(...parsed.map((problem) => `line ${number}: ${problem}`));
      continue;
    }
    const before = lineOfId.get(parsed.id);
    if (before !== undefined) {
      problems.push(`line ${number}: duplicate id "${parsed.id}", already on line ${before}`);
      continue;
    }
    lineOfId.set(parsed.id, number);
    records.push(parsed);
  }
  if (problems.length > 0) {
    const more = problems.length > SHOWN_PROBLEMS ? [`and ${problems.length - SHOWN_PROBLEMS} more`] : [];
    throw new UsageError([`${name}: invalid prompts`, ...problems.slice(0, SHOWN_PROBLEMS), ...more].join('\n  '));
  }
  if (records.length === 0) throw new UsageError(`${name} contains no prompts`);
  return records;
}

/** Decodes UTF-8; undefined for other bytes, because a prompt must not change on its way in. */
function decodeText(bytes: Buffer, line: number): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: line > 1 }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Parses one line to a record, or to a list of its problems. A prompt without id is named after its line number. */
export function parsePromptLine(text: string, line: number, maxBytes = MAX_PROMPT_BYTES): PromptRecord | string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [`not JSON: ${(error as Error).message}`];
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return ['not a JSON object'];
  let entry: PromptLine;
  try {
    entry = validate(PromptLine, value);
  } catch (error) {
    const faults = (error as BroomwagonError).details as FieldError[];
    return faults.map(({ field, reason }) => `${field}: ${reason}`);
  }
  const given = (['prompt', 'messages', 'promptTokenIds'] as const).filter((field) => entry[field] !== undefined);
  if (given.length === 0) return ['neither "prompt" nor "messages" nor "promptTokenIds"'];
  if (given.length > 1) return [`${given.map((field) => `"${field}"`).join(' and ')}: only one of them may be given`];
  const { prompt: promptText, messages, promptTokenIds, engineFields } = entry;
  const prompt = Object.fromEntries(
    Object.entries({ text: promptText, messages, promptTokenIds, engineFields }).filter(
      ([, part]) => part !== undefined,
    ),
  ) as Prompt;
  const fault = findPromptFault(prompt);
  if (fault) return [`${fault.field.replace(/^text$|^$/, given[0]!)}: ${fault.reason}`];
  const bytes = Buffer.byteLength(JSON.stringify(prompt));
  if (bytes > maxBytes) return [`the prompt has ${bytes} bytes, more than the limit of ${maxBytes}`];
  return { id: entry.id ?? `line-${line}`, line, prompt, domain: entry.domain };
}

/** One line of a prompts file. The protocol defines the rules for ids and the contents of a prompt. */
class PromptLine {
  @IsOptional() @IsId() id?: string;
  @IsOptional() @IsName() domain?: string;
  @IsOptional() prompt?: unknown;
  @IsOptional() messages?: unknown;
  @IsOptional() promptTokenIds?: unknown;
  /** Further fields of the engine's request, passed on unread. */
  @IsOptional() @IsObject() engineFields?: Record<string, unknown>;
  /** Reference answer, for the reader of the results that grades them; not sent anywhere. */
  @IsOptional() answer?: unknown;
}
