/** How an engine sends the tokens of a stream. */
export interface StreamPace {
  /** Tokens of its largest events; 1 if each token has an event. */
  interval: number;
  /** Tokens in a second; absent before the engine has sent two events. */
  tokensPerSecond?: number;
}

/**
 * Estimates how many tokens an engine had generated and not sent when its stream broke. At most one interval less one
 * token, which is also the answer if the rate is unknown: lost tokens are counted too high rather than too low.
 * @param silentMs time since the last event
 */
export function estimateUnsent({ interval, tokensPerSecond }: StreamPace, silentMs: number): number {
  const most = Math.max(0, interval - 1);
  if (tokensPerSecond === undefined) return most;
  return Math.min(most, Math.round((tokensPerSecond * silentMs) / 1_000));
}
