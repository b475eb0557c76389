/**
 * Contexts of sessions that wait for their tools, in the KV cache of one server. Blocks are freed as in vLLM: the
 * longest idle context is dropped first, from its end, so that its first part may stay.
 */
export class PrefixCache {
  private readonly contexts = new Map<string, number>();
  private tokens = 0;

  constructor(private readonly capacityTokens: number) {}

  /** Takes the context of a session out for its next turn. Returns its tokens; 0 = not cached. */
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

  /** Drops contexts, or parts of them, until they fit beside the running sequences. */
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
