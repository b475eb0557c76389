/** Returns a whole number that looks random, from whole numbers (the mixing step of MurmurHash3). */
export function spread(...parts: number[]): number {
  let hash = 0;
  for (const part of parts) {
    hash = Math.imul(hash ^ Math.imul(part + 1, 0xcc9e2d51), 0x1b873593);
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  }
  return (hash ^ (hash >>> 13)) >>> 0;
}
