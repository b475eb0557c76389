/** Tokens of one block of the KV cache: the default of vLLM. */
export const KV_BLOCK_TOKENS = 16;
/** Empty tokens in the last block of a sequence, on average: the sequence may end anywhere in the block. */
export const BLOCK_WASTE_TOKENS = (KV_BLOCK_TOKENS - 1) / 2;

/** Tokens that several sequences share, such as the prompt of the samples of a group. */
export interface SharedPrefix {
  key: string | number;
  tokens: number;
}

/** The parts of a context that the prefix cache of an engine knows. */
export interface CachedContext {
  /** First parts of the context, in order, that other sequences have too. A key stands for all tokens up to its end. */
  prefixes?: readonly SharedPrefix[];
  /** Key under which the rest of the context stays in the cache after the sequence, for the next turn of its session. */
  contextKey?: SharedPrefix['key'];
}

/** Tokens of the prefix that are shared: only whole blocks are. */
export function sharedTokens(prefix: SharedPrefix): number {
  return prefix.tokens - (prefix.tokens % KV_BLOCK_TOKENS);
}
