import type { RebalanceRequest, RebalanceServer } from './rebalance.types';

/** A running request that may be moved, with 1,000 generated and 1,000 remaining tokens. */
export function aRequest(requestId: string, parts: Partial<RebalanceRequest> = {}): RebalanceRequest {
  return {
    requestId,
    attempt: '1-a',
    phase: 'running',
    promptTokens: 0,
    madeTokens: 1_000,
    remainingTokens: 1_000,
    moves: 0,
    ...parts,
  };
}

/** A server with a number of requests `<serverId>/0`..., or with the given requests. */
export function aServer(
  serverId: string,
  requests: number | readonly RebalanceRequest[],
  parts: Partial<RebalanceServer> = {},
): RebalanceServer {
  const list =
    typeof requests === 'number'
      ? Array.from({ length: requests }, (_, index) => aRequest(`${serverId}/${index}`))
      : requests;
  return { serverId, epoch: 'e1', accepts: true, capacity: 1_024, requests: list, ...parts };
}
