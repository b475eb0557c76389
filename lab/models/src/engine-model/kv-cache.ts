import { BLOCK_WASTE_TOKENS, sharedTokens, SharedPrefixes, type SharedPrefix } from './kv-blocks';

/** Rounding of continuous contexts, tokens. */
const EPSILON = 1e-6;

/** KV cache of one engine: contexts of running sequences, with half-empty last blocks, and shared prefixes. */
export class KvCache {
  private readonly prefixes = new SharedPrefixes();
  private running = 0;
  private contexts = 0;
  private chunks = 0;

  constructor(private readonly capacityTokens: number) {}

  /** Tokens of the contexts of all running sequences, as attention reads them. */
  get contextTokens(): number {
    return this.contexts;
  }

  /** Computed tokens of the head of the queue, while its context is computed in chunks. */
  get chunkTokens(): number {
    return this.chunks;
  }

  /** Tokens in use by sequences, with the empty part of last blocks on average; idle prefixes do not count. */
  get tokensInUse(): number {
    return this.contexts + this.chunks - this.prefixes.savedTokens + this.running * BLOCK_WASTE_TOKENS;
  }

  get isFull(): boolean {
    return this.tokensInUse >= this.capacityTokens - EPSILON;
  }

  /** Decode steps until the cache is full; Infinity when nothing can be preempted. */
  get stepsToFull(): number {
    if (this.running < 2 && this.chunks === 0) return Infinity;
    return Math.max(0, (this.capacityTokens - this.tokensInUse) / this.running);
  }

  /** Whether blocks for so many tokens remain after all running sequences have taken the blocks of their next token. */
  fits(tokens: number, prefix?: SharedPrefix): boolean {
    const own = prefix && this.prefixes.isHeld(prefix) ? tokens - sharedTokens(prefix) : tokens;
    return this.tokensInUse + this.running + own + 1 + BLOCK_WASTE_TOKENS <= this.capacityTokens;
  }

  /** Stores the next chunk of the head of the queue. */
  takeChunk(tokens: number): void {
    this.chunks += tokens;
  }

  /** Drops the chunks of the head of the queue. Returns whether it had any. */
  dropChunks(): boolean {
    const had = this.chunks > 0;
    this.chunks = 0;
    return had;
  }

  /** Adds a sequence that starts to run. Returns its tokens that were in the cache: of its chunks or its prefix. */
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
    // Set to 0 when nothing runs, so that rounding errors do not add up.
    this.contexts = this.running === 0 ? 0 : this.contexts - context;
  }

  /** Adds one token per step to each running sequence. */
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
