import { attemptNumber } from '@broomwagon/testing';
import type { JoinCheck, JoinOutcome } from './join-check';
import type { ScoredPrompt } from './score-by-engine';

/** Result of the checker. Counts are of samples unless named otherwise. */
export interface CheckOutcome {
  prompts: number;
  /** Samples of each prompt: as given, or the highest sample index found + 1. */
  samplesPerPrompt: number;
  expected: number;
  /** Number of lines of the results file. */
  results: number;
  /** Number of (prompt, sample) pairs without a line. */
  lost: number;
  /** Number of lines beyond the first of a pair. */
  duplicated: number;
  /** Number of lines of unknown prompts, or with a sample index that is not below the number of samples. */
  unknown: number;
  /** Number of lines that are no results. */
  malformed: number;
  /** Number of lines whose parts contradict each other, or whose text is not the text of their token ids. */
  inconsistent: number;
  /** Result of the check of joins; absent without an engine. */
  joins?: JoinOutcome;
  ok: boolean;
  /** Descriptions of the first problems. */
  problems: string[];
}

/** Text of token ids as decoded by an engine, without special tokens that are not in the text of the response. */
export type Decode = (tokenIds: readonly number[], text?: string) => Promise<string>;

interface Entry {
  promptId: string;
  sampleIndex: number;
  line: number;
}

const SHOWN_PROBLEMS = 20;

/**
 * Checks results against prompts. The checker shares no code with the trainer except the splitting into lines, so that
 * it does not repeat the trainer's mistakes.
 * @param promptLines lines of the prompts file
 * @param resultLines lines of the results file
 * @param options.samples samples of each prompt; without it the highest index found + 1
 * @param options.first number of first prompts to check; default: all
 * @param options.joins compares the log probabilities of samples with the ones of an engine
 */
export async function checkResults(
  promptLines: AsyncIterable<string> | Iterable<string>,
  resultLines: AsyncIterable<string> | Iterable<string>,
  options: { samples?: number; first?: number; decode?: Decode; joins?: JoinCheck } = {},
): Promise<CheckOutcome> {
  const problems: string[] = [];
  const say = (problem: string): void => {
    if (problems.length < SHOWN_PROBLEMS) problems.push(problem);
  };
  const counts = { lost: 0, duplicated: 0, unknown: 0, malformed: 0, inconsistent: 0 };

  const promptIds = await readPromptIds(promptLines, options);
  const entries: Entry[] = [];
  let results = 0;
  let line = 0;
  for await (const text of resultLines) {
    line += 1;
    if (text.trim() === '') continue;
    results += 1;
    const value = parse(text);
    const entry = parseEntry(value, line);
    if (entry === undefined) {
      counts.malformed += 1;
      say(`results line ${line}: malformed`);
      continue;
    }
    entries.push(entry);
    const fields = value as Record<string, unknown>;
    const wrongCounts = contradictionIn(fields);
    if (wrongCounts === undefined) options.joins?.add(line, fields);
    const contradiction = wrongCounts ?? (await wrongTextIn(fields, options.decode));
    if (contradiction !== undefined) {
      counts.inconsistent += 1;
      say(`results line ${line}: ${contradiction}`);
    }
  }

  const samplesPerPrompt =
    options.samples ?? entries.reduce((most, { sampleIndex }) => Math.max(most, sampleIndex + 1), 0);
  const firstLineOf = new Map<string, number>();
  for (const { promptId, sampleIndex, line: at } of entries) {
    if (!promptIds.has(promptId) || sampleIndex >= samplesPerPrompt) {
      counts.unknown += 1;
      say(`results line ${at}: unknown prompt or sample ${promptId}/${sampleIndex}`);
      continue;
    }
    const pair = `${promptId}/${sampleIndex}`;
    const before = firstLineOf.get(pair);
    if (before === undefined) firstLineOf.set(pair, at);
    else {
      counts.duplicated += 1;
      say(`results line ${at}: ${pair} again, first on line ${before}`);
    }
  }
  // Without any result the number of samples is unknown, but at least one of each prompt is missing.
  const wanted = Math.max(1, samplesPerPrompt);
  for (const promptId of promptIds) {
    for (let sampleIndex = 0; sampleIndex < wanted; sampleIndex += 1) {
      if (firstLineOf.has(`${promptId}/${sampleIndex}`)) continue;
      counts.lost += 1;
      say(`lost: ${promptId}/${sampleIndex}`);
    }
  }
  const joins = await options.joins?.run(say);
  if (joins !== undefined && isBlind(joins)) {
    say(
      `The check of joins sees nothing on this engine: ${joins.control.found} of ${joins.control.harmed} tokens left out`,
    );
  }
  const joinsFit = joins === undefined || (joins.misfits === 0 && !isBlind(joins));
  const ok = joinsFit && Object.values(counts).every((count) => count === 0);
  return {
    prompts: promptIds.size,
    samplesPerPrompt,
    expected: promptIds.size * wanted,
    results,
    ...counts,
    joins,
    ok,
    problems,
  };
}

/** Whether an engine scores harmed samples as it scores others, so that a join that fits proves nothing. */
function isBlind({ control }: JoinOutcome): boolean {
  return control.harmed > 2 * control.found;
}

async function readPromptIds(
  lines: AsyncIterable<string> | Iterable<string>,
  { first = Number.POSITIVE_INFINITY, joins }: { first?: number; joins?: JoinCheck },
): Promise<Set<string>> {
  const ids = new Set<string>();
  let line = 0;
  for await (const text of lines) {
    line += 1;
    const bare = line === 1 ? text.replace(/^\uFEFF/, '') : text;
    if (bare.trim() === '') continue;
    if (ids.size >= first) break;
    const value = parse(bare);
    if (typeof value !== 'object' || value === null) throw new Error(`prompts line ${line}: not a JSON object`);
    const { id = `line-${line}` } = value as { id?: unknown };
    if (typeof id !== 'string') throw new Error(`prompts line ${line}: the id is not a string`);
    if (ids.has(id)) throw new Error(`prompts line ${line}: duplicate id "${id}"`);
    ids.add(id);
    joins?.addPrompt(id, value as ScoredPrompt);
  }
  return ids;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parseEntry(value: unknown, line: number): Entry | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { promptId, sampleIndex, segments, finishReason } = value as Record<string, unknown>;
  if (typeof promptId !== 'string' || !isCount(sampleIndex)) return undefined;
  if (!Array.isArray(segments) || (finishReason !== 'stop' && finishReason !== 'length')) return undefined;
  return { promptId, sampleIndex, line };
}

function contradictionIn(value: Record<string, unknown>): string | undefined {
  const segments = value.segments as { tokenCount?: unknown; attempt?: unknown; weightVersion?: unknown }[];
  let tokens = 0;
  let attempt = 0;
  let version = 0;
  for (const segment of segments) {
    if (segment === null || !isCount(segment.tokenCount)) return 'a segment has no counts';
    const number = attemptNumber(String(segment.attempt));
    if (!(number > attempt)) return `attempt ${segment.attempt} after attempt ${attempt}`;
    if (!isCount(segment.weightVersion) || segment.weightVersion < version) return 'weight versions run backwards';
    attempt = number;
    version = segment.weightVersion;
    tokens += segment.tokenCount;
  }
  const { tokenIds } = value;
  if (tokenIds === undefined) return undefined;
  if (!Array.isArray(tokenIds)) return 'tokenIds is not a list';
  return tokenIds.length === tokens ? undefined : `${tokenIds.length} token ids, but the segments say ${tokens}`;
}

/** Stop reason of a chat whose last tokens are tool calls, which its text lacks. */
const TOOL_CALLS = 'tool_calls';

/** Fault in a line whose text is not the text of its ids; only the stop text or token that ended it may be missing. */
async function wrongTextIn(value: Record<string, unknown>, decode: Decode | undefined): Promise<string | undefined> {
  const { text, tokenIds, stopReason } = value;
  if (decode === undefined || typeof text !== 'string' || !Array.isArray(tokenIds)) return undefined;
  const ids = tokenIds as number[];
  const decoded = await decode(ids, text);
  if (!decoded.startsWith(text)) return 'the text is not the text of the token ids';
  if (withoutHalf(decoded) === withoutHalf(text) || stopReason === TOOL_CALLS) return undefined;
  if (typeof stopReason === 'number' && (await decode(ids.slice(0, -1), text)) === text) return undefined;
  // The token that completes a stop text may have text beyond it.
  const hasStop =
    typeof stopReason === 'string' && (decoded.startsWith(stopReason, text.length) || text.endsWith(stopReason));
  return hasStop ? undefined : 'the text ends before its token ids';
}

/** Removes replacement characters at the end of a text, where the budget has cut within a character. */
function withoutHalf(text: string): string {
  return text.replace(/\uFFFD+$/, '');
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
