import type { EngineDialect } from '@broomwagon/contracts';
import { ZOO } from './zoo';
import type { ZooEntry } from './zoo-entry';

/**
 * Behaviours that an engine can begin and end to have while it runs. Another model, a form of chunks, and a field that
 * fails belong to a start of an engine: the result of a probe is valid until the next start.
 */
export const PASSING: readonly ZooEntry[] = ZOO.filter(
  ({ server, form, isAlone }) =>
    server?.restart === undefined && server?.intervalRule !== 'failed' && form === undefined && !isAlone,
);
/** Behaviours by which a call fails or is cut: only the first calls of a sample have them. */
export const FAILING: ReadonlySet<string> = new Set(
  ZOO.filter(({ failure }) => failure !== undefined).map(({ name }) => name),
);
/** Behaviours by which engines obey stop texts. Engines without them ignore stop texts. */
export const STOP_ENTRIES: ReadonlySet<string> = new Set(
  ZOO.filter(({ isAboutStops }) => isAboutStops).map(({ name }) => name),
);
/** Behaviour by which an engine of each dialect obeys stop texts in tests of whole systems. */
const STOPPING = { vllm: 'vllm-stop-withheld', sglang: 'sglang-stop-trimmed-at-end' } as const satisfies Partial<
  Record<EngineDialect, string>
>;
/** Behaviour of an engine whose tokens may end within a character: the engines of a model have one tokenizer. */
const HALF_CHARACTERS = { vllm: 'vllm-half-characters', sglang: 'sglang-half-characters' } as const;

/** Behaviours that all engines of a pool have, or none of them. */
export const COMMON: ReadonlySet<string> = new Set(
  ZOO.filter(({ endsWithinCharacters }) => endsWithinCharacters).map(({ name }) => name),
);

/** Behaviours that every engine of a pool has in tests of whole systems, where responses are continued elsewhere. */
export const getStanding = (dialect: 'vllm' | 'sglang', { stops = true, halves = true } = {}): string[] => [
  ...(stops ? [STOPPING[dialect]] : []),
  ...(halves ? [HALF_CHARACTERS[dialect]] : []),
];
/** Stop text that occurs in most responses of the simulator, and starts in one token and ends in the next. */
export const STOP_TEXT = '7 t';
/** Behaviours by which some tokens have no log probability. */
const LOGPROB_ENTRIES: readonly string[] = ['null-logprobs', 'infinite-logprobs'];
/** Behaviours by which an engine misses one of two ways to stop a request. */
export const STOP_MISSING: readonly string[] = ['aborts-ignored', 'closes-unnoticed'];

export function mayLackLogprobs(entries: readonly string[]): boolean {
  return LOGPROB_ENTRIES.some((name) => entries.includes(name));
}

/** Whether an engine with these behaviours runs each request to its end, whatever its caller does. */
export function canNotStop(entries: readonly string[]): boolean {
  return STOP_MISSING.every((name) => entries.includes(name));
}
