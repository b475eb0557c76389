import type { MoveMeans, RebalanceRequest } from './rebalance.types';

/** How long tokens take to get to another server. */
export interface MoveCostModel {
  /** Prompt and made tokens computed again per second. */
  prefillTokensPerSecond: number;
  /** Engines that can carry a KV cache over; absent: none can. */
  transfer?: {
    bytesPerToken: number;
    bytesPerSecond: number;
    /** Once per request, seconds. */
    setupSeconds: number;
  };
}

/** The cheapest way to move a request, and what it costs the new server, seconds. One without a cache loses nothing. */
export function moveCost(request: RebalanceRequest, model: MoveCostModel): { means: MoveMeans; seconds: number } {
  if (request.phase !== 'running') return { means: 'bind', seconds: 0 };
  const tokens = kvTokensOf(request);
  const recompute = tokens / model.prefillTokensPerSecond;
  if (model.transfer === undefined) return { means: 'recompute', seconds: recompute };
  const { setupSeconds, bytesPerToken, bytesPerSecond } = model.transfer;
  const transfer = setupSeconds + (tokens * bytesPerToken) / bytesPerSecond;
  return transfer < recompute ? { means: 'transfer', seconds: transfer } : { means: 'recompute', seconds: recompute };
}

/** Tokens it has, or will have once it runs, in the KV cache. */
export function kvTokensOf(request: RebalanceRequest): number {
  return request.promptTokens + request.madeTokens;
}
