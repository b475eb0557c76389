import { BLOCK_WASTE_TOKENS, sharedTokens, SharedPrefixes, type SharedPrefix } from './kv-blocks';

/** Rounding of continuous contexts, tokens. */
const EPSILON = 1e-6;

/** KV cache of one engine: contexts of what runs, in whole blocks on average, and prefixes that are stored once. */
export class KvCache {
  private readonly prefixes = new SharedPrefixes();
  private running = 0;
  private contexts = 0;
  private chunks = 0;

  constructor(private readonly capacityTokens: number) {}

  /** Contexts of all that run, as attention reads them, tokens. */
  get contextTokens(): number {
    return this.contexts;
  }

  /** What the head of the queue has here while its context is computed in chunks, tokens. */
  get chunkTokens(): number {
    return this.chunks;
  }

  /** In whole blocks on average; what only the prefix cache keeps does not count. */
  get tokensInUse(): number {
    return this.contexts + this.chunks - this.prefixes.savedTokens + this.running * BLOCK_WASTE_TOKENS;
  }

  get isFull(): boolean {
    return this.tokensInUse >= this.capacityTokens - EPSILON;
  }

  /** Decode steps until it is full; Infinity when nothing can be preempted. */
  get stepsToFull(): number {
    if (this.running < 2 && this.chunks === 0) return Infinity;
    return Math.max(0, (this.capacityTokens - this.tokensInUse) / this.running);
  }

  /** There are blocks for that many tokens more after all that run have taken those of their next token. */
  fits(tokens: number, prefix?: SharedPrefix): boolean {
    const own = prefix && this.prefixes.isHeld(prefix) ? tokens - sharedTokens(prefix) : tokens;
    return this.tokensInUse + this.running + own + 1 + BLOCK_WASTE_TOKENS <= this.capacityTokens;
  }

  /** Stores the next chunk of the head of the queue. */
  takeChunk(tokens: number): void {
    this.chunks += tokens;
  }

  /** The head of the queue loses its chunks. Returns whether it had any. */
  dropChunks(): boolean {
    const had = this.chunks > 0;
    this.chunks = 0;
    return had;
  }

  /** A sequence begins to run. Returns the tokens of it that were here: its chunks, or its prefix. */
  enter(context: number, prefix?: SharedPrefix): number {
    const found = this.chunks + (prefix && this.prefixes.hold(prefix) ? sharedTokens(prefix) : 0);
    this.chunks = 0;
    this.running += 1;
    this.contexts += context;
    this.evictPrefixes();
    return found;
  }

  leave(context: number, prefix?: SharedPrefix): void {
    if (prefix) this.prefixes.release(prefix);
    this.running -= 1;
    // Starts at 0 again, so that rounding errors do not add up.
    this.contexts = this.running === 0 ? 0 : this.contexts - context;
  }

  /** What runs makes that many tokens each. */
  grow(steps: number): void {
    this.contexts += steps * this.running;
    this.evictPrefixes();
  }

  forgetPrefixes(): void {
    this.prefixes.evict(0);
  }

  private evictPrefixes(): void {
    this.prefixes.evict(this.capacityTokens - this.tokensInUse);
  }
}
