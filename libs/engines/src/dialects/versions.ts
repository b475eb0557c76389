/** Weight version in the report of an engine that has no number for its weights. */
export const NO_VERSION = -1;

/** Weight version that an engine reports as a text, `default` at first; undefined if the text is not a number. */
export function weightNumber(said: unknown): number | undefined {
  const version = typeof said === 'string' && /^\d{1,14}$/.test(said) ? Number(said) : said;
  return typeof version === 'number' && Number.isSafeInteger(version) && version >= 0 ? version : undefined;
}

/** Whether a version is the wanted release or later. A build from source has no release number and counts as later. */
export function isAtLeast(version: string, wanted: number[]): boolean {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version);
  if (!match) return true;
  const have = match.slice(1).map(Number);
  const index = wanted.findIndex((part, position) => have[position] !== part);
  return index === -1 || have[index]! > wanted[index]!;
}
