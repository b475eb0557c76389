import type { SharedPrefix } from './kv-blocks';

/** One sequence to run. */
export interface EngineSequence<Id = string> {
  id: Id;
  /** Tokens of its context when it arrives: prompt, and what earlier attempts made. */
  contextTokens: number;
  /** Of these, how many must be computed, unless the prefix cache has them; 0 when its KV travels with it. */
  prefillTokens: number;
  /** Tokens until it ends; at least 1. */
  remainingTokens: number;
  /** First part of its context, when other sequences have the same. */
  prefix?: SharedPrefix;
}

export type SequenceState = 'waiting' | 'running' | 'finished';

/** Counters since the model was made. */
export interface EngineTotals {
  simulatedSeconds: number;
  /** Part of simulatedSeconds with a sequence running. */
  busySeconds: number;
  tokensMade: number;
  preemptions: number;
  /** Tokens computed before a decode could start: prompts, resumed contexts, and those preempted. */
  prefillTokens: number;
}
