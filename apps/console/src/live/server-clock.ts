/**
 * Minimum difference that counts, milliseconds: a smaller one may come from the network, and the header has whole
 * seconds only.
 */
const LEAST_MS = 3_000;
let offsetMs = 0;

/** Compares the clock of the browser with the clock of the server that sent a reply. */
export function noteClock({ headers }: Response): void {
  const aheadMs = Date.parse(headers.get('Date') ?? '') - Date.now();
  if (!Number.isNaN(aheadMs)) offsetMs = Math.abs(aheadMs) < LEAST_MS ? 0 : aheadMs;
}

/** The time of the server, milliseconds since 1970: the clock of the browser may be minutes off. */
export function nowMs(): number {
  return Date.now() + offsetMs;
}
