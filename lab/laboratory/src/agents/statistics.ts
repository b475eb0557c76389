/** A mean with the half-width of its 95 % interval; for a single value the half-width is not known. */
export interface Estimate {
  mean: number;
  least: number;
  most: number;
}

/** 97.5 % quantiles of Student's distribution, from 1 degree of freedom on. */
const STUDENT = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11];
const STUDENT_OF_MORE = 2.09;

/** Mean of values, with its 95 % interval. */
export function estimateMean(values: readonly number[]): Estimate {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length < 2) return { mean, least: -Infinity, most: Infinity };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const half = (STUDENT[values.length - 2] ?? STUDENT_OF_MORE) * Math.sqrt(variance / values.length);
  return { mean, least: mean - half, most: mean + half };
}

/** Geometric mean of the ratios of pairs, with its 95 % interval. */
export function estimateRatio(values: readonly number[], others: readonly number[]): Estimate {
  const { mean, least, most } = estimateMean(values.map((value, index) => Math.log(value / others[index]!)));
  return { mean: Math.exp(mean), least: Math.exp(least), most: Math.exp(most) };
}
