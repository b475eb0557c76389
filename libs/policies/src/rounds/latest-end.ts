/** A request of an open round that has not ended. */
export interface OpenRequest {
  requestId: string;
  groupId: string;
  state: 'pending' | 'claimed' | 'running' | 'cutting' | 'unfinished';
  /** Tokens so far, as reported last. */
  tokenCount: number;
  /** Token budget; absent if unknown. */
  maxTokens?: number;
  /** Speed of the attempt; absent before its first tokens are reported. */
  tokensPerSecond?: number;
  /** Time since the report of `tokenCount`, milliseconds. */
  tokensAgeMs?: number;
  /** Whether the request gets no tokens now. */
  isSilent?: boolean;
}
/** What an open round needs before it is complete. */
export interface RoundNeed {
  /** Needed groups that are not accepted. */
  missingGroups: number;
  /** Whether places are reserved for some groups, so that the round may wait for the last of all groups. */
  hasReserved: boolean;
  /** Time until the deadline of the policy, milliseconds; absent without a deadline. */
  deadlineInMs?: number;
}
/** Why the end of a round is unknown. */
export type UnknownEnd = 'groups' | 'worker' | 'server' | 'stopping' | 'silent' | 'speed' | 'limit';
/** Time until a round has its groups at the latest, or why the time is unknown; and the request that decides. */
export type LatestEnd =
  { inMs: number; request?: OpenRequest } | { inMs?: undefined; unknown: UnknownEnd; request?: OpenRequest };

/**
 * Computes when a round has its groups at the latest: running requests generate up to their budget, each with its own
 * speed, or with the median speed while its own is unknown. If more groups are live than the round needs, the slowest
 * groups do not count.
 */
export function computeLatestEnd(requests: readonly OpenRequest[], need: RoundNeed): LatestEnd {
  const { missingGroups, hasReserved, deadlineInMs } = need;
  const median = computeMedianSpeed(requests);
  const groups = new Map<string, LatestEnd>();
  for (const request of requests) {
    const [end, other] = [computeRequestEnd(request, median), groups.get(request.groupId)];
    if (other === undefined || compareEnds(end, other) > 0) groups.set(request.groupId, end);
  }
  const sorted = [...groups.values()].toSorted(compareEnds);
  const last = sorted[(hasReserved ? sorted.length : missingGroups) - 1];
  const end: LatestEnd = sorted.length < missingGroups ? { unknown: 'groups' } : (last ?? { inMs: 0 });
  const isCut = deadlineInMs !== undefined && (end.inMs === undefined || end.inMs > deadlineInMs);
  return isCut ? { inMs: Math.max(0, deadlineInMs) } : end;
}

function computeRequestEnd(request: OpenRequest, medianSpeed: number | undefined): LatestEnd {
  const { state, tokenCount, maxTokens, tokensPerSecond = medianSpeed, tokensAgeMs = 0, isSilent } = request;
  if (state === 'pending') return { unknown: 'worker', request };
  if (state === 'claimed') return { unknown: 'server', request };
  if (state !== 'running') return { unknown: 'stopping', request };
  if (isSilent) return { unknown: 'silent', request };
  if (!tokensPerSecond) return { unknown: 'speed', request };
  if (maxTokens === undefined) return { unknown: 'limit', request };
  const inMs = (Math.max(0, maxTokens - tokenCount) / tokensPerSecond) * 1_000 - tokensAgeMs;
  return { inMs: Math.max(0, inMs), request };
}

/** Orders ends by time; unknown ends are last. */
function compareEnds(one: LatestEnd, other: LatestEnd): number {
  if (one.inMs === undefined || other.inMs === undefined) {
    return Number(one.inMs === undefined) - Number(other.inMs === undefined);
  }
  return one.inMs - other.inMs;
}

function computeMedianSpeed(requests: readonly OpenRequest[]): number | undefined {
  const speeds = requests.flatMap(({ state, tokensPerSecond }) =>
    state === 'running' && tokensPerSecond ? [tokensPerSecond] : [],
  );
  return speeds.toSorted((one, other) => one - other)[Math.floor(speeds.length / 2)];
}
