/** Leases of a server, and the load that its engine reports. */
export interface EnginePressure {
  /** Present maximum of leases. */
  limit: number;
  /** The limit never grows above it. */
  maxInflight: number;
  /** Present leases. */
  inflight: number;
  /** Requests that the engine has not started. */
  waiting: number;
  /** KV cache in use, 0 to 1; absent if the engine does not report it. */
  kvUse?: number;
  /** Requests that the engine has removed from its cache since the last decision: it has taken too many. */
  newPreemptions: number;
}

/** KV use above which the limit is cut, and below which it may grow. Between the two it stays. */
const HIGH_KV_USE = 0.92;
const LOW_KV_USE = 0.8;
/** A cut leaves this share. */
const CUT = 0.75;
/** Growth, as a share of `maxInflight`; at least one lease. */
const GROWTH = 0.02;

/**
 * Additive increase, multiplicative decrease. The limit is cut on preemptions or a KV cache that is nearly full. It
 * grows while it is in use and the engine has room. An unused limit proves nothing about the engine, so it grows only
 * when the engine is idle.
 */
export function adaptiveLimit(pressure: EnginePressure): number {
  const { maxInflight, inflight, waiting, kvUse, newPreemptions } = pressure;
  const limit = Math.min(pressure.limit, maxInflight);
  if (newPreemptions > 0 || (kvUse !== undefined && kvUse > HIGH_KV_USE)) {
    // The leases in flight were too many, not a limit that was never reached.
    return Math.max(1, Math.floor(Math.min(limit, Math.max(1, inflight)) * CUT));
  }
  const hasRoom = waiting === 0 && (kvUse === undefined || kvUse < LOW_KV_USE);
  const isUsed = inflight >= limit || inflight === 0;
  if (!hasRoom || !isUsed) return limit;
  return Math.min(maxInflight, limit + Math.max(1, Math.floor(maxInflight * GROWTH)));
}
