/**
 * Lengths are counted in bins: exact below 64 tokens, then 32 bins to each doubling, so a bin is at most 3.2 % wide. A
 * million tokens are bin 513: a histogram is a few hundred numbers however many samples it holds, and two histograms
 * are merged by adding them.
 */
const EXACT = 64;
const PER_DOUBLING = 32;

/** The bin of a length, tokens. */
export function lengthBin(tokens: number): number {
  const whole = Math.max(0, Math.floor(tokens));
  if (whole < EXACT) return whole;
  const doublings = Math.floor(Math.log2(whole));
  // The logarithm of a number just below a power of two may round up to it.
  const octave = 2 ** doublings > whole ? doublings - 1 : doublings;
  const base = 2 ** octave;
  return EXACT + (octave - Math.log2(EXACT)) * PER_DOUBLING + Math.floor(((whole - base) * PER_DOUBLING) / base);
}

/** Middle of a bin, tokens: the value of its lengths in a mean. */
export function binTokens(bin: number): number {
  return bin < EXACT ? bin : binFloor(bin) + (binWidth(bin) - 1) / 2;
}

/**
 * Shortest length of a bin, tokens: the value of its lengths in a quantile, so that none is above the longest sample.
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
