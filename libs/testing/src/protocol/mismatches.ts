/**
 * Bodies that clients in the process of a test have sent or got and that do not fit the published schemas, one line
 * each.
 */
export const mismatches: string[] = [];

/** Fails when there are any, and forgets them. */
export function reportMismatches(): void {
  const found = mismatches.splice(0);
  if (found.length > 0) throw new Error(`Bodies that do not fit docs/protocol/asyncapi.json:\n${found.join('\n')}`);
}
