import type { SampleIdentity } from '../tokens/sample-identity';
import type { KvStore } from './kv-store';

/** Share of a prompt that is computed although the prefix cache has it. */
const CACHED_PREFILL_SHARE = 0.15;
const CACHED_PROMPTS = 4_096;

/** Contexts that an engine does not compute again: prompts in its prefix cache, and contexts in a KV store, if any. */
export class ContextCache {
  /** Numbers of the weights that computed each prompt, by prompt and salt. */
  private readonly prompts = new Map<string, number>();
  /** Prompts of each session that is not closed, by session. */
  private readonly sessions = new Map<string, Set<string>>();
  private weights = 0;
  closedSessions = 0;
  /** Number of cache hits on prompts that other weights had computed. */
  otherWeights = 0;

  constructor(
    private readonly prefillTokensPerSecond: number,
    private readonly store: KvStore | undefined,
    private readonly countsSessions = false,
  ) {}

  /** Tokens to compute before the first token of a request; the time to read from the store counts as tokens, too. */
  prefillTokens(identity: SampleIdentity, salt = '', sessionId?: string): number {
    const { promptTokens, madeTokens, promptKey } = identity;
    const key = `${promptKey} ${salt}`;
    const computed = madeTokens + promptTokens * this.prefillShare(key);
    if (this.countsSessions && sessionId !== undefined) {
      const prompts = this.sessions.get(sessionId) ?? new Set();
      this.sessions.set(sessionId, prompts.add(key));
    }
    const kept = this.store?.read(identity) ?? { tokens: 0, seconds: 0 };
    if (kept.tokens === 0) return computed;
    const left = promptTokens + madeTokens - kept.tokens;
    return Math.min(computed, left + kept.seconds * this.prefillTokensPerSecond);
  }

  /** Stores the context of a request that leaves the engine with so many generated tokens, over all its attempts. */
  keep(identity: SampleIdentity, madeTokens: number): void {
    this.store?.put(identity, identity.promptTokens + madeTokens);
  }

  get openSessions(): string[] {
    return [...this.sessions.keys()];
  }

  /** Drops the prompts of a session that no other session uses. */
  closeSession(sessionId: string): void {
    const prompts = this.sessions.get(sessionId);
    if (prompts === undefined) return;
    this.closedSessions += 1;
    this.sessions.delete(sessionId);
    for (const prompt of prompts) {
      if (![...this.sessions.values()].some((others) => others.has(prompt))) this.prompts.delete(prompt);
    }
  }

  clear(): void {
    this.prompts.clear();
    this.sessions.clear();
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
