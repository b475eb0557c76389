/** Leases of a server, and the load that the engine reports. */
export interface EnginePressure {
  /** Present maximum of leases. */
  limit: number;
  /** Highest value of the limit. */
  maxInflight: number;
  inflight: number;
  /** Requests that the engine has not started. */
  waiting: number;
  /** KV cache in use, 0 to 1; absent if the engine does not report it. */
  kvUse?: number;
  /** Requests that the engine has removed from its KV cache since the last decision, for lack of room. */
  newPreemptions: number;
}

/** KV use above which the limit is cut, and below which it may grow. Between the two it stays. */
const HIGH_KV_USE = 0.92;
const LOW_KV_USE = 0.8;
/** Share of the limit that a cut leaves. */
const CUT = 0.75;
/** Growth of the limit, as a share of `maxInflight`; at least one lease. */
const GROWTH = 0.02;

/**
 * Computes the next limit, by additive increase and multiplicative decrease. Preemptions, or a KV cache that is nearly
 * full, cut the limit. The limit grows while the engine has room, if all leases of the limit are in use, or none: a
 * limit that is partly used proves nothing about the engine.
 */
export function adaptiveLimit(pressure: EnginePressure): number {
  const { maxInflight, inflight, waiting, kvUse, newPreemptions } = pressure;
  const limit = Math.min(pressure.limit, maxInflight);
  if (newPreemptions > 0 || (kvUse !== undefined && kvUse > HIGH_KV_USE)) {
    // The cut starts from the leases in flight, because an unreached limit was not the cause.
    return Math.max(1, Math.floor(Math.min(limit, Math.max(1, inflight)) * CUT));
  }
  const hasRoom = waiting === 0 && (kvUse === undefined || kvUse < LOW_KV_USE);
  const isUsed = inflight >= limit || inflight === 0;
  if (!hasRoom || !isUsed) return limit;
  return Math.min(maxInflight, limit + Math.max(1, Math.floor(maxInflight * GROWTH)));
}
