/** One sample line of the Prometheus text format. */
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})?\s+(\S+)/;

/** Values of a metrics page by name, all label sets of a name together: their sum, and their greatest. */
export function readMetrics(page: string): Map<string, { sum: number; max: number }> {
  const metrics = new Map<string, { sum: number; max: number }>();
  for (const line of page.split('\n')) {
    const match = SAMPLE.exec(line);
    const value = Number(match?.[2]);
    if (!match || Number.isNaN(value)) continue;
    const seen = metrics.get(match[1]!);
    if (seen) {
      seen.sum += value;
      seen.max = Math.max(seen.max, value);
    } else {
      metrics.set(match[1]!, { sum: value, max: value });
    }
  }
  return metrics;
}
