/** What a decision on the capacity of a server is made from: its leases, and what the engine reports. */
export interface EnginePressure {
  /** Most leases now. */
  limit: number;
  /** Most leases ever: the limit never grows above it. */
  maxInflight: number;
  /** Leases now. */
  inflight: number;
  /** Requests the engine has not begun. */
  waiting: number;
  /** KV cache in use, 0 to 1; absent when the engine does not say. */
  kvUse?: number;
  /** Requests the engine had to push out of its cache since the last decision: it has taken too much. */
  newPreemptions: number;
}

/** Parameters of {@link adaptiveLimit}. */
export interface AdaptiveLimitOptions {
  /** KV use above which the limit is cut; default 0.92. */
  highKvUse?: number;
  /** KV use below which the limit may grow; default 0.8. Between the two it stays: hysteresis. */
  lowKvUse?: number;
  /** A cut leaves this share; default 0.75. */
  cut?: number;
  /** Growth, as a share of `maxInflight`; default 0.02, at least one lease. */
  growth?: number;
}

/**
 * Additive increase, multiplicative decrease. Cut on preemptions or a KV cache that is nearly full; grown while the
 * limit is in use and the engine has air. A limit nobody uses says nothing about what the engine can bear, so it does
 * not grow then, except back when the engine is idle.
 */
export function adaptiveLimit(pressure: EnginePressure, options: AdaptiveLimitOptions = {}): number {
  const { maxInflight, inflight, waiting, kvUse, newPreemptions } = pressure;
  const limit = Math.min(pressure.limit, maxInflight);
  const { highKvUse = 0.92, lowKvUse = 0.8, cut = 0.75, growth = 0.02 } = options;
  if (newPreemptions > 0 || (kvUse !== undefined && kvUse > highKvUse)) {
    // What is in flight is what was too much, not a limit that was never reached.
    return Math.max(1, Math.floor(Math.min(limit, Math.max(1, inflight)) * cut));
  }
  const hasAir = waiting === 0 && (kvUse === undefined || kvUse < lowKvUse);
  const isUsed = inflight >= limit || inflight === 0;
  if (!hasAir || !isUsed) return limit;
  return Math.min(maxInflight, limit + Math.max(1, Math.floor(maxInflight * growth)));
}
