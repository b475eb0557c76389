/** Highest value; `Math.max(...values)` throws if there are more values than a call takes arguments, about 120,000. */
export function highest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}
