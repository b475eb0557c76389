import type { Claim } from '@broomwagon/contracts';
import type { AttemptFence } from '../requests/request.store';

/** An attempt that a worker of a world holds, with the number of tokens generated. */
export interface Attempt {
  claim: Claim;
  fence: AttemptFence;
  tokens: number;
}

export function buildSegment({ fence, tokens }: Attempt): { segment: string; tokens: number } {
  const segment = {
    attempt: fence.attempt,
    serverId: 's1',
    serverEpoch: 'e1',
    weightVersion: 1,
    tokenCount: tokens,
    ref: `${fence.requestId}-${fence.attempt}`,
  };
  return { segment: JSON.stringify(segment), tokens };
}
