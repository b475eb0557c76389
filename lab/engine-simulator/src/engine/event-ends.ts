/**
 * Token counts at which the next events of a stream end: after the first token, and then after each interval. The last
 * event has all tokens that are left.
 * @param sent tokens of earlier events
 * @param made tokens so far, more than `sent`
 * @param interval tokens of one event; 1: one event for all tokens that there are
 */
export function findEventEnds(sent: number, made: number, interval = 1, isLast = false): number[] {
  if (interval <= 1) return [made];
  const ends = [];
  for (let end = sent === 0 ? 1 : sent + interval; end <= made; end += interval) ends.push(end);
  if (isLast && ends.at(-1) !== made) ends.push(made);
  return ends;
}
