import { isCount } from '../fields/read-fields';

/** Tokens [start, end) of a response, and the weights that generated them. */
export interface WeightSpan {
  version: string;
  start: number;
  end: number;
}

/**
 * The weights of the tokens of a call, as its engine has reported them: a list of spans, else one version for all
 * tokens. Parts of spans after the last kept token of the call, or before the end of the previous span, are left out.
 * Empty if there is no valid report.
 * @param count tokens of the call that were kept
 */
export function reportedSpans(list: unknown, scalar: unknown, count: number): WeightSpan[] {
  if (Array.isArray(list) && list.length > 0 && list.every(isSpan)) {
    let last = 0;
    return list.flatMap(({ version, start, end }) => {
      const span = { version: String(version), start: Math.max(start, last), end: Math.min(end, count) };
      if (span.end <= span.start) return [];
      last = span.end;
      return [span];
    });
  }
  return isVersion(scalar) ? [{ version: String(scalar), start: 0, end: count }] : [];
}

function isSpan(value: unknown): value is WeightSpan {
  if (typeof value !== 'object' || value === null) return false;
  const { version, start, end } = value as Record<string, unknown>;
  return isVersion(version) && isCount(start, 0, Number.MAX_SAFE_INTEGER) && isCount(end, start as number, Infinity);
}

function isVersion(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}
