/** Tokens of one block of the KV cache: the default of vLLM. */
export const KV_BLOCK_TOKENS = 16;
/** Empty tokens in the last block of a sequence, on average: the sequence may end anywhere in the block. */
export const BLOCK_WASTE_TOKENS = (KV_BLOCK_TOKENS - 1) / 2;

/** First tokens that several sequences share, such as the prompt of the samples of a group. */
export interface SharedPrefix {
  key: string | number;
  tokens: number;
}

/** Tokens of the prefix that are shared: only whole blocks are. */
export function sharedTokens(prefix: SharedPrefix | undefined): number {
  return prefix === undefined ? 0 : prefix.tokens - (prefix.tokens % KV_BLOCK_TOKENS);
}

interface Entry {
  tokens: number;
  holders: number;
}

/**
 * Prefix cache of one engine: blocks of a prefix are stored once however many sequences hold them. Idle prefixes are
 * evicted when sequences need their blocks, the least recently held first.
 */
export class SharedPrefixes {
  private readonly entries = new Map<SharedPrefix['key'], Entry>();
  private idle = 0;
  private saved = 0;

  /** Tokens that sharing saves: the prefix tokens of all holders beyond the first. */
  get savedTokens(): number {
    return this.saved;
  }

  isHeld({ key }: SharedPrefix): boolean {
    return (this.entries.get(key)?.holders ?? 0) > 0;
  }

  /** Takes the prefix. Returns whether it was in the cache. */
  hold(prefix: SharedPrefix): boolean {
    const entry = this.entries.get(prefix.key);
    if (!entry) {
      this.entries.set(prefix.key, { tokens: sharedTokens(prefix), holders: 1 });
      return false;
    }
    if (entry.holders === 0) this.idle -= entry.tokens;
    else this.saved += entry.tokens;
    entry.holders += 1;
    return true;
  }

  release({ key }: SharedPrefix): void {
    const entry = this.entries.get(key)!;
    entry.holders -= 1;
    if (entry.holders > 0) {
      this.saved -= entry.tokens;
      return;
    }
    this.idle += entry.tokens;
    // Moves the prefix to the end of the order of eviction.
    this.entries.delete(key);
    this.entries.set(key, entry);
  }

  /** Drops prefixes without holders until the remaining ones fit into `roomTokens`. */
  evict(roomTokens: number): void {
    if (this.idle <= Math.max(0, roomTokens)) return;
    for (const [key, { tokens, holders }] of this.entries) {
      if (holders > 0) continue;
      this.entries.delete(key);
      this.idle -= tokens;
      if (this.idle <= roomTokens) return;
    }
  }
}
