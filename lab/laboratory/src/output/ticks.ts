const ABOUT = 6;

/** Round values that hold all others between the first and the last; from 0 unless that wastes the axis. */
export function niceTicks(values: readonly number[], isTight: boolean): number[] {
  const high = Math.max(...values, isTight ? -Infinity : 0);
  const low = Math.min(...values, isTight ? Infinity : 0);
  const span = high - low || Math.abs(high) || 1;
  const rough = span / ABOUT;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough)!;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

export function tickText(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}
