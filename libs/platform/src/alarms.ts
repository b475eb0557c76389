import { Injectable, Logger } from '@nestjs/common';
import { Metrics } from './metrics';

/** Alarms are logged and counted when they begin, and logged when they end. */
@Injectable()
export class Alarms {
  private readonly logger = new Logger(Alarms.name);
  /** Subject of a pool -> name of the alarm. */
  private readonly raised = new Map<string, string>();

  private readonly counter;
  private readonly active;

  constructor(metrics: Metrics) {
    this.counter = metrics.counter('alarms_total', 'Alarms by name, counted when they begin; the log says what to do', [
      'alarm',
    ]);
    this.active = metrics.gauge('alarms_active', '1: the alarm has not ended; pool="*": of no single pool', [
      'pool',
      'alarm',
    ]);
  }

  /**
   * Compares the present alarm of a subject with the last one.
   * @param subject subject of the check: it has at most one alarm in a pool
   * @param name name of the alarm, as in `alarms_total`; undefined = there is none
   */
  look(pool: string, subject: string, name: string | undefined, says: string, about: object = {}): void {
    const key = `${pool} ${subject}`;
    const before = this.raised.get(key);
    // Also when nothing changed: the gauges of a pool that was not served for a while were removed.
    if (name !== undefined) this.active.set({ pool, alarm: name }, 1);
    if (name === before) return;
    if (before !== undefined) this.active.set({ pool, alarm: before }, 0);
    if (name === undefined) {
      this.raised.delete(key);
      this.logger.log({ pool, alarm: before }, 'The alarm has ended');
      return;
    }
    this.raised.set(key, name);
    this.counter.inc({ alarm: name });
    this.logger.error({ pool, alarm: name, ...about }, says);
  }
}
