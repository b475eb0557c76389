import { Gauge, type LabelValues } from 'prom-client';

/** Time after which a value that was not read again disappears, milliseconds: six reads of the usual interval. */
export const READ_GAUGE_MAX_AGE_MS = 30_000;

/**
 * A gauge of values that this process reads periodically from elsewhere. A value that cannot be read any more
 * disappears, since a value that stands still looks like a measurement.
 */
export class ReadGauge<Label extends string> extends Gauge<Label> {
  private readonly read = new Map<string, { labels: LabelValues<Label>; atMs: number }>();

  constructor(
    configuration: ConstructorParameters<typeof Gauge<Label>>[0],
    private readonly maxAgeMs: number,
  ) {
    super(configuration);
  }

  override set(labels: LabelValues<Label> | number, value?: number): void {
    const of = typeof labels === 'number' ? {} : labels;
    super.set(of, typeof labels === 'number' ? labels : value!);
    this.read.set(JSON.stringify(of), { labels: of, atMs: performance.now() });
  }

  override get(): ReturnType<Gauge<Label>['get']> {
    const oldMs = performance.now() - this.maxAgeMs;
    for (const [key, { labels, atMs }] of this.read) {
      if (atMs >= oldMs) continue;
      this.remove(labels);
      this.read.delete(key);
    }
    return super.get();
  }
}
