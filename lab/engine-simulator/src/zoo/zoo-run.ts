import { isBroomwagonError, type EngineDialect, type ErrorCode, type Prompt } from '@broomwagon/contracts';
import { createEngineAdapter, engineRequestId, type GenerationResult } from '@broomwagon/engines';
import { TokenBuffer } from '@broomwagon/generation';
import { selectZoo } from '../test-engine';
import { formatWords } from '../tokens/token-script';
import { INTERVAL } from './entries/texts';
import { canNotStop, FAILING } from './zoo-sets';

const MAX_ATTEMPTS = 12;
const GENERATED_ID_BASE = 1_000_000;
/** Timeout for an engine that hangs; a slow call that exceeds it is only repeated. */
const STALL_MS = 300;
/** Tokens that an engine with the behaviour `stream-interval` has not sent when it stands still. */
const UNSENT_TOKENS = 2;

/** A sample of one engine with some behaviours, and the positions at which its caller cuts it. */
export interface ZooSample {
  dialect: EngineDialect;
  url: string;
  entries: string[];
  /** Position at which behaviours start. */
  at: number;
  /** Number of calls with the failing behaviours. */
  hits: number;
  /** Numbers of tokens after which the caller stops each call. */
  cuts: number[];
  prompt: Prompt;
  maxTokens?: number;
  /** Tokens of one event that the engine is asked for. */
  streamInterval?: number;
  sampling: { seed: number; logprobs: boolean; stop?: string[] };
}

export interface ZooOutcome {
  text: string;
  tokenIds: number[];
  logprobs: (number | null)[];
  tokenCount: number;
  finishReason: GenerationResult['finishReason'];
  stopReason?: string | number;
  /** Ends of all calls before the last one. */
  ends: (ErrorCode | 'aborted')[];
  /** Tokens of the last call: as counted by the engine, and as received. */
  usage?: number;
  lastCall: number;
}

let runs = 0;

/** Continues one sample, call by call, until it ends. @throws Error if there is no end */
export async function runSample(sample: ZooSample): Promise<ZooOutcome> {
  const { dialect, url, entries, cuts, prompt, maxTokens = 8_192, streamInterval, sampling } = sample;
  const isHanging = entries.includes('hung-healthy');
  const limits = isHanging ? { stallTimeoutMs: STALL_MS, firstTokenTimeoutMs: STALL_MS } : {};
  const adapter = createEngineAdapter(dialect, url, { ...limits, endTimeoutMs: STALL_MS });
  const buffer = new TokenBuffer(sampling.stop ?? [], false);
  const ends: ZooOutcome['ends'] = [];
  runs += 1;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const active = entries.filter((name) => attempt < sample.hits || !FAILING.has(name));
    const cut = cuts[attempt] ?? Infinity;
    // An engine that did not stand still would be at the end of the response before the abort.
    await selectZoo(url, { entries: active, at: sample.at, standsAt: findStand(cut, entries, attempt) });
    const stop = new AbortController();
    let arrived = 0;
    const made = { text: buffer.text, tokenIds: buffer.allIds, tokenCount: buffer.count };
    const request = {
      engineRequestId: engineRequestId(`zoo-${runs}`, `${attempt}`),
      prompt,
      maxTokens,
      streamInterval,
      sampling,
      ...(buffer.count > 0 && { made }),
    };
    const onTokens: NonNullable<Parameters<typeof adapter.generate>[1]>['onTokens'] = (increment) => {
      arrived += increment.tokenCount;
      if (buffer.take(increment) || arrived >= cut) stop.abort();
    };
    // Behaviours that hold tokens back may leave less than `cut` tokens before the engine stands still.
    const timer = cut === Infinity ? undefined : setTimeout(() => stop.abort(), STALL_MS);
    try {
      const end = await adapter.generate(request, { signal: stop.signal, onTokens, readsAtOnce: () => true });
      if (buffer.matched !== undefined)
        return outcome(buffer, ends, { ...end, finishReason: 'stop', usage: undefined }, 0);
      if (end.finishReason !== 'aborted') {
        buffer.complete();
        return outcome(buffer, ends, end, arrived);
      }
      if (buffer.isComplete) return outcome(buffer, ends, { ...end, finishReason: 'stop', usage: undefined }, 0);
      ends.push('aborted');
    } catch (error) {
      if (!isBroomwagonError(error)) throw error;
      ends.push(error.code);
    } finally {
      clearTimeout(timer);
    }
    buffer.cut();
  }
  throw new Error(`No end after ${MAX_ATTEMPTS} calls: ${ends.join(', ')}`);
}

/**
 * Number of tokens at which an engine stands still, once `cut` tokens have arrived. The first tokens of a call that
 * continues ids are held until they end with a whole character, so that it needs some tokens more. A request
 * that the engine ends for no caller would stand still for ever.
 */
function findStand(cut: number, entries: readonly string[], attempt: number): number | undefined {
  if (cut === Infinity || canNotStop(entries)) return undefined;
  const sent = attempt === 0 ? cut : cut + INTERVAL;
  return entries.includes('stream-interval') ? Math.ceil((sent - 1) / INTERVAL) * INTERVAL + 1 + UNSENT_TOKENS : sent;
}

function outcome(buffer: TokenBuffer, ends: ZooOutcome['ends'], end: GenerationResult, lastCall: number): ZooOutcome {
  return {
    text: buffer.text,
    tokenIds: buffer.allIds ?? [],
    logprobs: (buffer.allLogprobs ?? []).map((logprob) => (Number.isNaN(logprob) ? null : logprob)),
    tokenCount: buffer.count,
    ends,
    finishReason: end.finishReason,
    stopReason: buffer.matched ?? end.stopReason,
    usage: end.usage?.completionTokens,
    lastCall,
  };
}

/** Text of ids by the tokenizer of the simulator. */
export function decode(tokenIds: readonly number[]): string {
  return formatWords(tokenIds.map((id) => id - GENERATED_ID_BASE));
}
