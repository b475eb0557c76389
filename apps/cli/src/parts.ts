/** @throws the first failure, if a part has failed */
export function throwFailure(parts: readonly PromiseSettledResult<unknown>[]): void {
  const failed = parts.find((part) => part.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** The value of a part; undefined for a part that has failed. */
export function getFulfilled<Value>(part: PromiseSettledResult<Value>): Value | undefined {
  return part.status === 'fulfilled' ? part.value : undefined;
}

/** The text of a part, or why it has not answered. */
export function formatPart<Value>(part: PromiseSettledResult<Value>, text: (value: Value) => string): string {
  return part.status === 'fulfilled' ? text(part.value) : `(no reply: ${(part.reason as Error).message})`;
}
