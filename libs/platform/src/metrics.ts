import { ReplySubjects, type MessageMetrics } from '@broomwagon/messaging';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry, type Metric } from 'prom-client';
import { READ_GAUGE_MAX_AGE_MS, ReadGauge } from './read-gauge';

const NAME = /^[a-z]+(_[a-z]+)*$/;
/** Suffixes that names must not have, because Prometheus adds them. Names also must not have `UNITS` or `TYPES`. */
const SUFFIXES = /_(total|count|sum|bucket)$/;
const UNITS =
  /_(milliseconds|microseconds|nanoseconds|ms|minutes|hours|days|kilobytes|megabytes|gigabytes|percent)(_|$)/;
const TYPES = /(^|_)(counter|gauge|histogram|summary)(_|$)/;
/** Labels that Prometheus sets for each target. Labels of ours with these names would become `exported_*`. */
const LABELS_OF_PROMETHEUS = new Set(['job', 'instance']);

/** Checks the rules of `promtool check metrics`, and `LABELS_OF_PROMETHEUS`. @throws Error for a broken rule */
function check(type: 'counter' | 'gauge' | 'histogram', name: string, help: string, labels: readonly string[]): void {
  const broken =
    (!NAME.test(name) && 'is not in lower-case words with _ between them') ||
    (UNITS.test(name) && 'has no base unit: seconds, bytes, ratio') ||
    (TYPES.test(name) && 'holds its type') ||
    (type === 'counter' && !name.endsWith('_total') && 'is a counter that does not end in _total') ||
    (type !== 'counter' && SUFFIXES.test(name) && `is a ${type} with a suffix that Prometheus reserves`) ||
    (!help.trim() && 'has no help text') ||
    (labels.some((label) => LABELS_OF_PROMETHEUS.has(label)) && 'has a label that Prometheus sets');
  if (broken) throw new Error(`Metric ${name} ${broken}`);
}

const DURATION_BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

/** The metrics of a service, each created once by name. Labels must have few values: an id is never a label. */
export class Metrics {
  readonly registry = new Registry();

  /** @param pool pool of a process that serves one pool, which is then a label of all its series */
  constructor(app: string, pool?: string) {
    this.registry.setDefaultLabels(pool === undefined ? { app } : { app, pool });
  }

  /** Adds the metrics of Node: memory, event loop lag, garbage collection. */
  collectProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  /** @param name without prefix, ends in `_total`, e.g. `leases_granted_total` */
  counter<Label extends string = string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    check('counter', name, help, labelNames);
    return this.once(name, (full) => new Counter({ name: full, help, labelNames, registers: [this.registry] }));
  }

  /** @param name without prefix, e.g. `leases` */
  gauge<Label extends string = string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    check('gauge', name, help, labelNames);
    return this.once(name, (full) => new Gauge({ name: full, help, labelNames, registers: [this.registry] }));
  }

  /**
   * Creates a gauge of values that are read periodically: a value that was not read for `maxAgeMs` disappears.
   * @param name without prefix, e.g. `leases`
   */
  readGauge<Label extends string = string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
    maxAgeMs = READ_GAUGE_MAX_AGE_MS,
  ): ReadGauge<Label> {
    check('gauge', name, help, labelNames);
    return this.once(
      name,
      (full) => new ReadGauge({ name: full, help, labelNames, registers: [this.registry] }, maxAgeMs),
    );
  }

  /** @param name without prefix, e.g. `script_seconds` */
  histogram<Label extends string = string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
    buckets: number[] = DURATION_BUCKETS_S,
  ): Histogram<Label> {
    check('histogram', name, help, labelNames);
    return this.once(
      name,
      (full) => new Histogram({ name: full, help, labelNames, buckets, registers: [this.registry] }),
    );
  }

  /** Removes all series of gauges with this label, for example the series of a deleted pool. */
  async forget(label: string, value: string): Promise<void> {
    for (const metric of this.registry.getMetricsAsArray()) {
      if (!(metric instanceof Gauge)) continue;
      for (const { labels } of (await metric.get()).values) if (labels[label] === value) metric.remove(labels);
    }
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  private once<M extends Metric>(name: string, make: (fullName: string) => M): M {
    const fullName = `broomwagon_${name}`;
    return (this.registry.getSingleMetric(fullName) as unknown as M | undefined) ?? make(fullName);
  }
}

/** Creates the metrics of the transport: messages by declared subject and outcome. */
export function messageMetrics(metrics: Metrics): MessageMetrics {
  const handled = metrics.counter('messages_handled_total', 'Messages by outcome; much OVERLOADED: add replicas', [
    'subject',
    'outcome',
  ]);
  const duration = metrics.histogram('message_seconds', 'Time from receipt to reply', ['subject']);
  const inFlight = metrics.gauge(
    'messages_in_flight',
    'Messages being handled; above MAX_IN_FLIGHT they are answered OVERLOADED',
  );
  return {
    handled: (subject, outcome, durationSeconds) => {
      handled.inc({ subject, outcome });
      duration.observe({ subject }, durationSeconds);
    },
    inFlight: (count) => inFlight.set(count),
  };
}

/** Creates a check that counts refused replies. */
export function createReplySubjects(inboxes: readonly string[], metrics: Metrics): ReplySubjects {
  const refused = metrics.counter('replies_refused_total', 'Replies to subjects that are no inboxes (REPLY_PREFIXES)');
  return new ReplySubjects(inboxes, () => refused.inc());
}
