/**
 * Contexts of sessions that wait for their tools, in the KV cache of one server. As vLLM frees blocks: those of the
 * longest idle context go first, its last ones before its first, so that a part of it may stay.
 */
export class PrefixCache {
  private readonly contexts = new Map<string, number>();
  private tokens = 0;

  constructor(private readonly capacityTokens: number) {}

  /** Takes the context out, as its next turn runs on it. Returns its tokens; 0 = not here. */
  take(sessionId: string): number {
    const tokens = this.contexts.get(sessionId) ?? 0;
    this.contexts.delete(sessionId);
    this.tokens -= tokens;
    return tokens;
  }

  put(sessionId: string, tokens: number): void {
    this.take(sessionId);
    this.contexts.set(sessionId, tokens);
    this.tokens += tokens;
  }

  /** Drops contexts, or parts, until they and what runs fit. */
  trim(runningTokens: number): void {
    for (const [sessionId, tokens] of this.contexts) {
      const over = this.tokens + runningTokens - this.capacityTokens;
      if (over <= 0) return;
      if (over >= tokens) this.take(sessionId);
      else {
        this.contexts.set(sessionId, tokens - over);
        this.tokens -= over;
      }
    }
  }
}
