/** A cut of the link and two dials fit into the time to live of the leases. */
const SILENCES_PER_TTL = 3;
/** A busy machine is silent for shorter than this, milliseconds. */
const MIN_SILENCE_MS = 2_000;
const MAX_SILENCE_MS = 5_000;

/**
 * Silence after which a link to NATS or Redis is cut and dialed again while an answer is waited for, milliseconds.
 * @param ttlMs time to live of the leases that are renewed over the link
 */
export function linkSilenceMs(ttlMs: number): number {
  return Math.min(MAX_SILENCE_MS, Math.max(MIN_SILENCE_MS, Math.floor(ttlMs / SILENCES_PER_TTL)));
}

/** Shortest time to live of leases that outlive a silent link, milliseconds. */
export function minTtlMs(silenceMs: number): number {
  return SILENCES_PER_TTL * silenceMs;
}

/** True if leases outlive a link that drops bytes: the link is cut and dialed again before they expire. */
export function outlivesSilentLink(ttlMs: number, silenceMs = linkSilenceMs(ttlMs)): boolean {
  return ttlMs >= minTtlMs(silenceMs);
}
