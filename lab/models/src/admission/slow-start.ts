/** A server in slow start. */
export interface SlowStart {
  /** Most leases at once when it is warm. */
  maxInflight: number;
  /** Time since the server started, milliseconds. */
  ageMs: number;
  /** Time to reach `maxInflight`, milliseconds; 0 = at once. */
  slowStartMs: number;
  /** Share of `maxInflight` at the start, 0 to 1; default 0.1. */
  fraction?: number;
}

/**
 * Most leases of a server that has just started: its caches are cold and its kernels not compiled, and without this
 * bound the emptiest server gets all leases. Grows linearly from the fraction to `maxInflight`; at least one lease.
 */
export function slowStartCapacity({ maxInflight, ageMs, slowStartMs, fraction = 0.1 }: SlowStart): number {
  const age = Math.max(0, ageMs);
  if (age >= slowStartMs) return maxInflight;
  const share = fraction + (1 - fraction) * (age / slowStartMs);
  return Math.min(maxInflight, Math.max(1, Math.floor(maxInflight * share)));
}
