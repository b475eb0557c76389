import type { SampleIdentity } from '../tokens/sample-identity';
import type { KvStore } from './kv-store';

/** Share of a prompt that is computed although the prefix cache has it. */
const CACHED_PREFILL_SHARE = 0.15;
const CACHED_PROMPTS = 4_096;

/** Contexts that an engine does not compute again: prompts in its prefix cache, and contexts in a KV store, if any. */
export class ContextCache {
  /** Numbers of the weights that computed each prompt, by prompt and salt. */
  private readonly prompts = new Map<string, number>();
  private weights = 0;
  /** Number of cache hits on prompts that other weights had computed. */
  otherWeights = 0;

  constructor(
    private readonly prefillTokensPerSecond: number,
    private readonly store: KvStore | undefined,
  ) {}

  /** Tokens to compute before the first token of a request; the time to read from the store counts as tokens, too. */
  prefillTokens(identity: SampleIdentity, salt = ''): number {
    const { promptTokens, madeTokens, promptKey } = identity;
    const computed = madeTokens + promptTokens * this.prefillShare(`${promptKey} ${salt}`);
    const kept = this.store?.read(identity) ?? { tokens: 0, seconds: 0 };
    if (kept.tokens === 0) return computed;
    const left = promptTokens + madeTokens - kept.tokens;
    return Math.min(computed, left + kept.seconds * this.prefillTokensPerSecond);
  }

  /** Stores the context of a request that leaves the engine with so many generated tokens, over all its attempts. */
  keep(identity: SampleIdentity, madeTokens: number): void {
    this.store?.put(identity, identity.promptTokens + madeTokens);
  }

  clear(): void {
    this.prompts.clear();
    this.store?.clear();
  }

  /** Notes new weights of the engine; the cache stays. */
  changeWeights(): void {
    this.weights += 1;
  }

  private prefillShare(key: string): number {
    const by = this.prompts.get(key);
    if (by !== undefined && by !== this.weights) this.otherWeights += 1;
    this.prompts.delete(key);
    this.prompts.set(key, by ?? this.weights);
    if (this.prompts.size > CACHED_PROMPTS) this.prompts.delete(this.prompts.keys().next().value!);
    return by === undefined ? 1 : CACHED_PREFILL_SHARE;
  }
}
