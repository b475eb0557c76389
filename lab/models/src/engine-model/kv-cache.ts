import { BlockCache } from './block-cache';
import { BLOCK_WASTE_TOKENS, type CachedContext, type SharedPrefix } from './kv-blocks';

/** Rounding of continuous contexts, tokens. */
const EPSILON = 1e-6;

/** KV cache of one engine: contexts of running sequences, with half-empty last blocks, and the prefix cache. */
export class KvCache {
  private readonly blocks = new BlockCache();
  private running = 0;
  private contexts = 0;
  private chunks = 0;
  /** Context of the running sequence that is still computed, and does not decode yet; 0: all running ones decode. */
  private pending = 0;

  constructor(private readonly capacityTokens: number) {}

  /** Tokens of the contexts of all decoding sequences, as attention reads them. */
  get contextTokens(): number {
    return this.contexts - this.pending;
  }

  /** Computed tokens of the head of the queue, while its context is computed in chunks. */
  get chunkTokens(): number {
    return this.chunks;
  }

  /** Tokens in use by sequences, with the empty part of last blocks on average; idle blocks do not count. */
  get tokensInUse(): number {
    return this.contexts + this.chunks - this.blocks.savedTokens + this.running * BLOCK_WASTE_TOKENS;
  }

  get isFull(): boolean {
    return this.tokensInUse >= this.capacityTokens - EPSILON;
  }

  /** Decode steps until the cache is full; Infinity when nothing can be preempted, or nothing decodes. */
  get stepsToFull(): number {
    if ((this.running < 2 && this.chunks === 0) || this.decoding === 0) return Infinity;
    return Math.max(0, (this.capacityTokens - this.tokensInUse) / this.decoding);
  }

  /** Whether blocks for so many tokens remain after all running sequences have taken the blocks of their next token. */
  fits(tokens: number, context: CachedContext): boolean {
    const own = tokens - this.blocks.countHeld(context);
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

  /** Adds a sequence that starts to run. Returns its tokens that were in the cache: of its chunks or found there. */
  enter(tokens: number, context: CachedContext): number {
    const found = this.chunks + this.blocks.hold(context, tokens);
    this.chunks = 0;
    this.running += 1;
    this.contexts += tokens;
    this.evictIdle();
    return found;
  }

  /** Notes that the sequence of this context does not decode yet; 0: all running sequences decode. */
  setPending(tokens: number): void {
    this.pending = tokens;
  }

  /** Takes a sequence out that holds so many tokens, of which `computed` may stay in the cache. */
  leave(tokens: number, context: CachedContext, computed: number): void {
    this.blocks.release(context, computed);
    this.running -= 1;
    // Set to 0 when nothing runs, so that rounding errors do not add up.
    this.contexts = this.running === 0 ? 0 : this.contexts - tokens;
    this.evictIdle();
  }

  /** Adds one token per step to each decoding sequence. */
  grow(steps: number): void {
    this.contexts += steps * this.decoding;
    this.evictIdle();
  }

  /** Drops all idle blocks. */
  forgetIdle(): void {
    this.blocks.evict(0);
  }

  /** Drops an idle context or prefix. */
  drop(key: SharedPrefix['key']): void {
    this.blocks.drop(key);
  }

  private get decoding(): number {
    return this.pending > 0 ? this.running - 1 : this.running;
  }

  private evictIdle(): void {
    this.blocks.evict(this.capacityTokens - this.tokensInUse);
  }
}
