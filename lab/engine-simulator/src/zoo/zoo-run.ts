import { isBroomwagonError, type EngineDialect, type Prompt } from '@broomwagon/contracts';
import { createEngineAdapter, engineRequestId, type GenerationResult } from '@broomwagon/engines';
import { selectZoo } from '../test-engine';
import { wordsOf } from '../tokens/token-script';

/** Behaviours by which a call fails or is cut: they hit the first calls of a sample alone. */
const FAILING = new Set([
  'sglang-waiting-abort',
  'done-without-reason',
  'error-in-data',
  'error-text-in-data',
  'error-event',
  'whole-answer',
  'gzip-always',
  'cut-at-byte',
  'full-429',
  'full-503',
  'full-retry-after',
  'hung-healthy',
]);
const MAX_ATTEMPTS = 12;
const GENERATED_ID_BASE = 1_000_000;
/** With an engine that hangs: a call that is only slow begins again. */
const STALL_MS = 300;

/** A sample of one engine with some behaviours, and the places at which its caller cuts it. */
export interface ZooSample {
  dialect: EngineDialect;
  url: string;
  entries: string[];
  /** Position at which behaviours show. */
  at: number;
  /** Calls that the failing behaviours hit. */
  hits: number;
  /** Tokens after which the caller stops each call. */
  cuts: number[];
  prompt: Prompt;
  sampling: Record<string, unknown>;
}

export interface ZooOutcome {
  text: string;
  tokenIds: number[];
  logprobs: (number | null)[];
  tokenCount: number;
  end: GenerationResult;
  /** Codes of the calls that failed. */
  failures: string[];
  attempts: number;
}

let runs = 0;

/** Continues one sample, call by call, until the engine reports its end. @throws Error if there is none */
export async function runSample(sample: ZooSample): Promise<ZooOutcome> {
  const { dialect, url, entries, cuts, prompt, sampling } = sample;
  const isHanging = entries.includes('hung-healthy');
  const limits = isHanging ? { stallTimeoutMs: STALL_MS, firstTokenTimeoutMs: STALL_MS } : {};
  const adapter = createEngineAdapter(dialect, url, limits);
  const made = { text: '', tokenIds: [] as number[], logprobs: [] as (number | null)[], tokenCount: 0 };
  const failures: string[] = [];
  runs += 1;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const active = entries.filter((name) => attempt < sample.hits || !FAILING.has(name));
    await selectZoo(url, { entries: active, at: sample.at });
    const cut = new AbortController();
    let arrived = 0;
    const request = {
      engineRequestId: engineRequestId(`zoo-${runs}`, `${attempt}`),
      prompt,
      maxTokens: 8_192,
      sampling,
      ...(made.tokenCount > 0 && {
        made: { ...made, tokenIds: dialect === 'openai' ? undefined : [...made.tokenIds] },
      }),
    };
    const onTokens: NonNullable<Parameters<typeof adapter.generate>[1]>['onTokens'] = (increment) => {
      made.text += increment.text;
      made.tokenCount += increment.tokenCount;
      made.tokenIds.push(...(increment.tokenIds ?? []));
      made.logprobs.push(...(increment.logprobs ?? []));
      arrived += increment.tokenCount;
      if (arrived >= (cuts[attempt] ?? Infinity)) cut.abort();
    };
    try {
      const end = await adapter.generate(request, { signal: cut.signal, onTokens, readsAtOnce: () => true });
      if (end.finishReason !== 'aborted') return { ...made, end, failures, attempts: attempt + 1 };
    } catch (error) {
      if (!isBroomwagonError(error)) throw error;
      failures.push(error.code);
    }
  }
  throw new Error(`No end after ${MAX_ATTEMPTS} calls: ${failures.join(', ')}`);
}

/** The text that the tokenizer of the simulator has for ids. */
export function decode(tokenIds: readonly number[]): string {
  return wordsOf(tokenIds.map((id) => id - GENERATED_ID_BASE));
}
