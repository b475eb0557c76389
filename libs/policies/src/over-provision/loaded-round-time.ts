/** A moment of a round. */
export interface RoundMoment {
  /** Tokens of a sample that has run since the beginning of the round. */
  tokens: number;
  /** Tokens that all samples have generated together. */
  madeTokens: number;
  ms: number;
}

const FEWEST_MOMENTS = 8;

/**
 * Fits the time until one sample has generated `tokens` and all samples together have generated `madeTokens`: `a + b x
 * tokens + c x madeTokens`, without negative factors. Decode steps with times of the form t0 + c x batch add up to this
 * form, so the fit also holds for other batches. Without enough moments or a fit, the time is `tokens`, because only
 * ratios of times matter.
 */
export function loadedRoundTime(moments: readonly RoundMoment[]): (tokens: number, madeTokens: number) => number {
  const plain = (tokens: number): number => tokens;
  if (moments.length < FEWEST_MOMENTS) return plain;
  const most = (of: (moment: RoundMoment) => number): number => Math.max(1, ...moments.map(of));
  const [mostTokens, mostMade] = [most(({ tokens }) => tokens), most(({ madeTokens }) => madeTokens)];
  const rows = moments.map(({ tokens, madeTokens }) => [1, tokens / mostTokens, madeTokens / mostMade]);
  const wanted = moments.map(({ ms }) => ms);
  let best: { parts: number[]; error: number } | undefined;
  for (const used of [[0, 1, 2], [1, 2], [0, 1], [0, 2], [1], [2]]) {
    const parts = leastSquares(rows, wanted, used);
    if (parts === undefined || parts.some((part) => part < 0)) continue;
    const error = rows.reduce((sum, row, index) => sum + (dot(row, parts) - wanted[index]!) ** 2, 0);
    if (best === undefined || error < best.error) best = { parts, error };
  }
  if (best === undefined || best.parts[1]! + best.parts[2]! <= 0) return plain;
  const [fixed, perToken, perMade] = best.parts as [number, number, number];
  return (tokens, madeTokens) => fixed + (perToken * tokens) / mostTokens + (perMade * madeTokens) / mostMade;
}

/**
 * Returns the best factors of the three columns, 0 for columns that are not `used`; undefined if the used columns
 * depend on each other.
 */
function leastSquares(
  rows: readonly (readonly number[])[],
  wanted: readonly number[],
  used: readonly number[],
): number[] | undefined {
  const system = used.map((one) => [
    ...used.map((other) => rows.reduce((sum, row) => sum + row[one]! * row[other]!, 0)),
    rows.reduce((sum, row, index) => sum + row[one]! * wanted[index]!, 0),
  ]);
  for (let column = 0; column < used.length; column++) {
    const pivot = system[column]!;
    // Pivots of normal equations are not negative. A pivot near 0 shows a column that depends on the others.
    if (pivot[column]! < 1e-9 * rows.length) return undefined;
    for (const row of system) {
      if (row === pivot) continue;
      const factor = row[column]! / pivot[column]!;
      for (let index = column; index <= used.length; index++) row[index]! -= factor * pivot[index]!;
    }
  }
  const factors = [0, 0, 0];
  used.forEach((column, index) => (factors[column] = system[index]![used.length]! / system[index]![index]!));
  return factors;
}

function dot(row: readonly number[], factors: readonly number[]): number {
  return row.reduce((sum, value, index) => sum + value * factors[index]!, 0);
}
