import type { CachedContext } from './kv-blocks';

/** One sequence to run. */
export interface EngineSequence<Id = string> extends CachedContext {
  id: Id;
  /** Tokens of the context at arrival: the prompt and the tokens of earlier attempts. */
  contextTokens: number;
  /** Context tokens that must be computed unless the prefix cache has them; 0 when the KV is transferred. */
  prefillTokens: number;
  /** Tokens until the sequence ends; at least 1. */
  remainingTokens: number;
}

export type SequenceState = 'waiting' | 'running' | 'finished';

/** Counters since the model was created. */
export interface EngineTotals {
  simulatedSeconds: number;
  /** Part of simulatedSeconds during which at least one sequence ran. */
  busySeconds: number;
  tokensMade: number;
  preemptions: number;
  /** Tokens computed before a decode could start: of prompts, resumed contexts and preempted contexts. */
  prefillTokens: number;
  /** Context tokens that arriving sequences found in the prefix cache; preempted sequences do not count. */
  hitTokens: number;
}
