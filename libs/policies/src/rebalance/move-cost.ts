import type { MoveMeans, RebalanceRequest } from './rebalance.types';

/** Model of the time until a server has the KV cache of a moved request. */
export interface MoveCostModel {
  /** Tokens that a server computes again, per second. */
  prefillTokensPerSecond: number;
  /** Speed at which servers read a cache from their KV store; absent: there is no store. */
  transfer?: {
    bytesPerToken: number;
    bytesPerSecond: number;
    /** Fixed time for each request, seconds. */
    setupSeconds: number;
  };
}

/**
 * Returns the cost of a move for the new server. A request without a cache costs nothing. A cache moves in the cheaper
 * way.
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

/** Returns the tokens that a request has in the KV cache, or will have when it runs. */
export function countKvTokens(request: RebalanceRequest): number {
  return request.promptTokens + request.madeTokens;
}

/** Returns the tokens that a request has in the KV cache at its end. */
export function countEndTokens(request: RebalanceRequest): number {
  return countKvTokens(request) + request.remainingTokens;
}
