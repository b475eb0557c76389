import { KV_BLOCK_TOKENS, sharedTokens, type CachedContext, type SharedPrefix } from './kv-blocks';

/**
 * Prefix cache of one engine, in blocks. A context is a chain: prefixes that several sequences share, then its own
 * tokens. Blocks of a prefix are stored once however many sequences hold them. Blocks that nobody holds stay in the
 * cache until sequences need the memory: then the block released longest ago is evicted. A sequence releases its blocks
 * from the last to the first, so a chain is evicted from its end.
 */
export class BlockCache {
  private readonly held = new Map<SharedPrefix['key'], { tokens: number; holders: number }>();
  /** Cached tokens from the start of each part of a chain that nobody holds, released longest ago first. */
  private readonly idle = new Map<SharedPrefix['key'], number>();
  private idleSum = 0;
  private saved = 0;

  /** Tokens that sharing saves: the prefix tokens of all holders beyond the first. */
  get savedTokens(): number {
    return this.saved;
  }

  /** Tokens of the prefixes of a context that other sequences hold, and so need no more memory. */
  countHeld({ prefixes = [] }: CachedContext): number {
    return prefixes.reduce((sum, prefix) => sum + (this.held.has(prefix.key) ? sharedTokens(prefix) : 0), 0);
  }

  /** Takes the blocks of a context. Returns its tokens that are in the cache, from its start without a gap. */
  hold({ prefixes = [], contextKey }: CachedContext, contextTokens: number): number {
    let [found, start, isWhole] = [0, 0, true];
    for (const prefix of prefixes) {
      const tokens = sharedTokens(prefix);
      const cached = Math.min(tokens, wholeBlocks(this.holdPrefix(prefix.key, tokens)));
      if (isWhole) found += cached;
      isWhole &&= cached === tokens;
      start += tokens;
    }
    if (contextKey === undefined) return found;
    const own = wholeBlocks(this.takeIdle(contextKey));
    return isWhole ? found + Math.min(own, wholeBlocks(contextTokens - start)) : found;
  }

  /** Gives the blocks of a context back, of which so many tokens are computed. */
  release({ prefixes = [], contextKey }: CachedContext, computedTokens: number): void {
    let start = prefixes.reduce((sum, prefix) => sum + sharedTokens(prefix), 0);
    if (contextKey !== undefined) this.putIdle(contextKey, computedTokens - start);
    for (const prefix of prefixes.toReversed()) {
      const tokens = sharedTokens(prefix);
      start -= tokens;
      const entry = this.held.get(prefix.key)!;
      entry.holders -= 1;
      if (entry.holders > 0) {
        this.saved -= tokens;
      } else {
        this.held.delete(prefix.key);
        this.putIdle(prefix.key, Math.min(tokens, computedTokens - start));
      }
    }
  }

  /** Drops a part of a chain, unless a sequence holds it. */
  drop(key: SharedPrefix['key']): void {
    this.takeIdle(key);
  }

  /** Evicts idle blocks until the remaining ones fit into `roomTokens`. */
  evict(roomTokens: number): void {
    const room = Math.max(0, roomTokens);
    if (this.idleSum <= room) return;
    for (const [key, tokens] of this.idle) {
      const over = this.idleSum - room;
      if (over < tokens) {
        this.idle.set(key, tokens - over);
        this.idleSum -= over;
        return;
      }
      this.takeIdle(key);
      if (this.idleSum <= room) return;
    }
  }

  private holdPrefix(key: SharedPrefix['key'], tokens: number): number {
    const entry = this.held.get(key);
    if (entry) {
      entry.holders += 1;
      this.saved += tokens;
      return entry.tokens;
    }
    this.held.set(key, { tokens, holders: 1 });
    return this.takeIdle(key);
  }

  private takeIdle(key: SharedPrefix['key']): number {
    const tokens = this.idle.get(key) ?? 0;
    this.idle.delete(key);
    // Set to 0 when nothing is idle, so that rounding errors do not add up.
    this.idleSum = this.idle.size === 0 ? 0 : this.idleSum - tokens;
    return tokens;
  }

  /** Makes a part of a chain the newest idle one. */
  private putIdle(key: SharedPrefix['key'], tokens: number): void {
    if (tokens <= 0) return;
    this.takeIdle(key);
    this.idle.set(key, tokens);
    this.idleSum += tokens;
  }
}

function wholeBlocks(tokens: number): number {
  return Math.max(0, tokens - (tokens % KV_BLOCK_TOKENS));
}
