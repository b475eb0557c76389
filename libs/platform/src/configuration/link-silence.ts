/** Number of silences in a time to live of leases: for the cut of the link and two dials. */
const SILENCES_PER_TTL = 3;
/** Minimum silence, milliseconds. A busy machine is silent for a shorter time. */
const MIN_SILENCE_MS = 2_000;
const MAX_SILENCE_MS = 5_000;

/**
 * Returns the time without an expected answer after which a link to NATS or Redis is cut and dialed again,
 * milliseconds.
 * @param ttlMs time to live of the leases that are renewed over the link
 */
export function linkSilenceMs(ttlMs: number): number {
  return Math.min(MAX_SILENCE_MS, Math.max(MIN_SILENCE_MS, Math.floor(ttlMs / SILENCES_PER_TTL)));
}

/** Returns the shortest time to live of leases that outlive a silent link, milliseconds. */
export function minTtlMs(silenceMs: number): number {
  return SILENCES_PER_TTL * silenceMs;
}

/** True if a link that drops bytes is cut and dialed again before leases expire. */
export function outlivesSilentLink(ttlMs: number, silenceMs = linkSilenceMs(ttlMs)): boolean {
  return ttlMs >= minTtlMs(silenceMs);
}
