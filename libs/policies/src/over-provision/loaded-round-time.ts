/** A moment of a round, counted from its beginning. */
export interface RoundMoment {
  /** Tokens that a sample has generated that has run from the beginning. */
  tokens: number;
  /** Tokens that all samples have generated together. */
  madeTokens: number;
  ms: number;
}

const FEWEST_MOMENTS = 8;

/**
 * Fits how long a round takes until a sample has generated `tokens` and all together have generated `madeTokens`:
 * `a + b x tokens + c x madeTokens`, the best fit without negative factors. Decode steps of t0 + cb x batch add up to
 * this form, so the fit holds for rounds with other batches too. With too few moments, or no fit, the time is `tokens`:
 * only ratios of times matter.
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
 * Factors of the three columns that fit best, 0 for columns that are not `used`; undefined if the columns are alike.
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
    // Normal equations are positive: a pivot near 0 belongs to a column that the others make up.
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
