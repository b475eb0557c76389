/** One sample line of the Prometheus text format. */
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?\s+(\S+)/;
const LABEL = /(\w+)="([^"]*)"/g;

/** All samples of one name, whatever their labels. */
export interface Metric {
  sum: number;
  max: number;
  /** The different values of each label. */
  labels: Record<string, Set<string>>;
}

export function readMetrics(page: string): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  for (const line of page.split('\n')) {
    const match = SAMPLE.exec(line);
    const value = Number(match?.[3]);
    if (!match || Number.isNaN(value)) continue;
    let metric = metrics.get(match[1]!);
    if (!metric) metrics.set(match[1]!, (metric = { sum: 0, max: -Infinity, labels: {} }));
    metric.sum += value;
    metric.max = Math.max(metric.max, value);
    for (const [, label, said] of match[2]?.matchAll(LABEL) ?? []) (metric.labels[label!] ??= new Set()).add(said!);
  }
  return metrics;
}

/** Tokens of prompts and responses that an engine has counted since it started; undefined if it counts none. */
export function countTokens(metrics: Map<string, Metric>, engine: 'vllm' | 'sglang'): number | undefined {
  const counts = ['prompt', 'generation'].map((kind) => metrics.get(`${engine}:${kind}_tokens_total`)?.sum);
  return counts[1] === undefined ? undefined : (counts[0] ?? 0) + counts[1];
}

/**
 * Start of the process that has written the page, by its clock, in seconds with milliseconds; undefined if the page
 * does not report the start.
 */
export function getProcessStart(metrics: Map<string, Metric>): number | undefined {
  const startedAt = metrics.get('process_start_time_seconds')?.max;
  return startedAt && Math.round(startedAt * 1_000) / 1_000;
}
