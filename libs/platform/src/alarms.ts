import { Injectable, Logger } from '@nestjs/common';
import type { ReplicaAlarm } from '@broomwagon/contracts';
import { Metrics } from './metrics';

/** Logs and counts each alarm at its begin, and logs its end. */
@Injectable()
export class Alarms {
  private readonly logger = new Logger(Alarms.name);
  /** Present alarms, by pool and subject. */
  private readonly raised = new Map<string, ReplicaAlarm>();

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

  /** The present alarms of this process. */
  list(): ReplicaAlarm[] {
    return [...this.raised.values()];
  }

  /**
   * Compares the present alarm of a subject with the last one.
   * @param subject subject of the check, which has at most one alarm in a pool
   * @param name name of the alarm, as in `alarms_total`; undefined = no alarm
   */
  look(pool: string, subject: string, name: string | undefined, says: string, about: object = {}): void {
    const key = `${pool} ${subject}`;
    const before = this.raised.get(key)?.alarm;
    // The gauge is set also for an unchanged alarm, because gauges are removed while their pool is not served.
    if (name !== undefined) this.active.set({ pool, alarm: name }, 1);
    if (name === before) return;
    if (before !== undefined) this.active.set({ pool, alarm: before }, 0);
    if (name === undefined) {
      this.raised.delete(key);
      this.logger.log({ pool, alarm: before }, 'The alarm has ended');
      return;
    }
    this.raised.set(key, { pool, alarm: name, message: says, sinceMs: Date.now() });
    this.counter.inc({ alarm: name });
    this.logger.error({ pool, alarm: name, ...about }, says);
  }
}
