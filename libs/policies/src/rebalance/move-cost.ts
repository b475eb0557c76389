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

/**
 * Cost of a move for the new server. A request without a cache costs nothing; one with a cache moves the cheaper way.
 * @param sharesStore both servers use one KV store
 */
export function moveCost(
  request: RebalanceRequest,
  { prefillTokensPerSecond, transfer }: MoveCostModel,
  sharesStore: boolean,
): { means: MoveMeans; costSeconds: number } {
  if (request.phase !== 'running') return { means: 'bind', costSeconds: 0 };
  const tokens = countKvTokens(request);
  const recomputeSeconds = tokens / prefillTokensPerSecond;
  if (sharesStore && transfer !== undefined) {
    const transferSeconds = transfer.setupSeconds + (tokens * transfer.bytesPerToken) / transfer.bytesPerSecond;
    if (transferSeconds < recomputeSeconds) return { means: 'transfer', costSeconds: transferSeconds };
  }
  return { means: 'recompute', costSeconds: recomputeSeconds };
}

/** Tokens it has, or will have once it runs, in the KV cache. */
export function countKvTokens(request: RebalanceRequest): number {
  return request.promptTokens + request.madeTokens;
}

/** KV tokens when it ends. */
export function countEndTokens(request: RebalanceRequest): number {
  return countKvTokens(request) + request.remainingTokens;
}
