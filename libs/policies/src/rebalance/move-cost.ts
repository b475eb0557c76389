import type { MoveMeans, RebalanceRequest } from './rebalance.types';

/** How long tokens take to get to another server. */
export interface MoveCostModel {
  /** Prompt and made tokens computed again per second. */
  prefillTokensPerSecond: number;
  /** How fast servers of one KV store read a cache from it; absent: there is no such store. */
  transfer?: {
    bytesPerToken: number;
    bytesPerSecond: number;
    /** Once per request, seconds. */
    setupSeconds: number;
  };
}

/** What a move costs the new server, seconds: with the cache in a store that both share, and otherwise. */
export interface MoveCosts {
  /** Infinity when it is no faster than to compute the cache again. */
  transferSeconds: number;
  recomputeSeconds: number;
}

/** One without a cache loses nothing. */
export function moveCosts(request: RebalanceRequest, model: MoveCostModel): MoveCosts {
  if (request.phase !== 'running') return { transferSeconds: Infinity, recomputeSeconds: 0 };
  const tokens = kvTokensOf(request);
  const recomputeSeconds = tokens / model.prefillTokensPerSecond;
  if (model.transfer === undefined) return { transferSeconds: Infinity, recomputeSeconds };
  const { setupSeconds, bytesPerToken, bytesPerSecond } = model.transfer;
  const transferSeconds = setupSeconds + (tokens * bytesPerToken) / bytesPerSecond;
  return { transferSeconds: transferSeconds < recomputeSeconds ? transferSeconds : Infinity, recomputeSeconds };
}

/** The cheaper way, and what it costs. @param sharesStore both servers use one KV store */
export function moveCost(
  { phase }: RebalanceRequest,
  { transferSeconds, recomputeSeconds }: MoveCosts,
  sharesStore: boolean,
): { means: MoveMeans; costSeconds: number } {
  if (phase !== 'running') return { means: 'bind', costSeconds: 0 };
  return sharesStore && transferSeconds < Infinity
    ? { means: 'transfer', costSeconds: transferSeconds }
    : { means: 'recompute', costSeconds: recomputeSeconds };
}

/** Tokens it has, or will have once it runs, in the KV cache. */
export function kvTokensOf(request: RebalanceRequest): number {
  return request.promptTokens + request.madeTokens;
}
