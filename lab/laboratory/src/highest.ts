/** `Math.max(...values)` ends with a RangeError if there are more values than a call may have arguments, about 120,000. */
export function highest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}
