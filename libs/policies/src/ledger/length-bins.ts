/**
 * Lengths are counted in bins: below 64 tokens each length is a bin, above there are 32 bins for each doubling, so a
 * bin is at most 3.2 % wide. A million tokens are bin 513, so a histogram of any number of samples has a few hundred
 * numbers. Two histograms are merged by addition.
 */
const EXACT = 64;
const PER_DOUBLING = 32;

/** Returns the bin of a length in tokens. */
export function lengthBin(tokens: number): number {
  const whole = Math.max(0, Math.floor(tokens));
  if (whole < EXACT) return whole;
  const doublings = Math.floor(Math.log2(whole));
  // The logarithm of a number just below a power of two may be rounded up.
  const octave = 2 ** doublings > whole ? doublings - 1 : doublings;
  const base = 2 ** octave;
  return EXACT + (octave - Math.log2(EXACT)) * PER_DOUBLING + Math.floor(((whole - base) * PER_DOUBLING) / base);
}

/** Returns the middle of a bin, tokens: the length that stands for the bin in a mean. */
export function binTokens(bin: number): number {
  return bin < EXACT ? bin : binFloor(bin) + (binWidth(bin) - 1) / 2;
}

/**
 * Returns the shortest length of a bin, tokens: the length that stands for the bin in a quantile, so that no quantile
 * is above the longest sample.
 */
export function binFloor(bin: number): number {
  if (bin < EXACT) return bin;
  return EXACT * 2 ** toOctave(bin) + ((bin - EXACT) % PER_DOUBLING) * binWidth(bin);
}

function toOctave(bin: number): number {
  return Math.floor((bin - EXACT) / PER_DOUBLING);
}

function binWidth(bin: number): number {
  return (EXACT * 2 ** toOctave(bin)) / PER_DOUBLING;
}

const RANGES_PER_DOUBLING = 4;

/** Returns the edges of the range of a ledger that has a length, in tokens. A doubling has four ranges. */
export function lengthRange(tokens: number): { fromTokens: number; toTokens: number } {
  const range = Math.floor(Math.log2(Math.max(1, tokens)) * RANGES_PER_DOUBLING);
  const toEdge = (edge: number): number => (edge === 0 ? 0 : Math.round(2 ** (edge / RANGES_PER_DOUBLING)));
  return { fromTokens: toEdge(range), toTokens: toEdge(range + 1) };
}
