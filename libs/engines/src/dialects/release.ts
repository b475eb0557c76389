/** Compares release numbers; a version without them (a build from source) counts as new. */
export function isAtLeast(version: string, wanted: number[]): boolean {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version);
  if (!match) return true;
  const have = match.slice(1).map(Number);
  const index = wanted.findIndex((part, position) => have[position] !== part);
  return index === -1 || have[index]! > wanted[index]!;
}
