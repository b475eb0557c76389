/**
 * Minimum difference of the two clocks that is corrected, milliseconds. A smaller difference may come from the network,
 * and the header `Date` has only whole seconds.
 */
const MIN_MS = 3_000;
let offsetMs = 0;

/** Compares the clock of the browser with the header `Date` of a reply. */
export function noteClock({ headers }: Response): void {
  const aheadMs = Date.parse(headers.get('Date') ?? '') - Date.now();
  if (!Number.isNaN(aheadMs)) offsetMs = Math.abs(aheadMs) < MIN_MS ? 0 : aheadMs;
}

/** The time of the server, milliseconds since 1970: the clock of the browser may be minutes off. */
export function nowMs(): number {
  return Date.now() + offsetMs;
}
