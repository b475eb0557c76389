import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { readCpuSeconds } from '../generator/measurement';

/** Processes whose CPU time counts, in the order of the tables. Engines do not count. */
export const PARTS = [
  'nats',
  'redis',
  'payloads',
  'balancer',
  'coordinator',
  'worker',
  'gateway',
  'trainer',
  'client',
] as const;
export type Part = (typeof PARTS)[number];

/** A number for each part, for example CPU seconds. */
export type PerPart = Record<Part, number>;

const PAGE_BYTES = 4_096;
/** Time of a look at the CPU of the parts, and their share of a core above which they are at work. */
const QUIET_MS = 1_000;
const QUIET_SHARE = 0.1;
const QUIET_DEADLINE_MS = 120_000;

export function perPart(value: (part: Part) => number): PerPart {
  return Object.fromEntries(PARTS.map((part) => [part, value(part)])) as PerPart;
}

export function sumParts(values: PerPart, parts: readonly Part[] = PARTS): number {
  return parts.reduce((sum, part) => sum + values[part], 0);
}

/** CPU seconds of the parts in a time. */
export interface Usage {
  seconds: number;
  cpuSeconds: PerPart;
}

/** The processes of the fleet, and their CPU time. */
export class Processes {
  private readonly ids = new Map<Part, number>();
  /** CPU seconds that a part without load uses in a second. */
  private idle: PerPart = perPart(() => 0);

  set(part: Part, processId: number): void {
    this.ids.set(part, processId);
  }

  get(part: Part): number {
    return this.ids.get(part)!;
  }

  /** CPU seconds of a part since its start. */
  readCpuSeconds(part: Part): number {
    return readCpuSeconds(this.get(part));
  }

  /** Measures the CPU time of all parts while the work runs, with the time that they use without load. */
  async measure(work: () => Promise<unknown>): Promise<Usage> {
    const startedAtMs = performance.now();
    const before = this.readCpu();
    await work();
    const after = this.readCpu();
    return {
      seconds: (performance.now() - startedAtMs) / 1_000,
      cpuSeconds: perPart((part) => after[part] - before[part]),
    };
  }

  /** Measures the CPU time without load, which {@link busy} then subtracts. */
  async measureIdle(ms: number): Promise<PerPart> {
    const { seconds, cpuSeconds } = await this.measure(() => delay(ms));
    this.idle = perPart((part) => cpuSeconds[part] / seconds);
    return this.idle;
  }

  /**
   * Waits until no part works off what an earlier phase has left, for example tokens of cancelled requests: they are
   * stored after their streams have ended.
   */
  async untilQuiet(): Promise<void> {
    const endsAtMs = performance.now() + QUIET_DEADLINE_MS;
    for (;;) {
      const { seconds, cpuSeconds } = await this.measure(() => delay(QUIET_MS));
      const loud = PARTS.filter((part) => cpuSeconds[part] / seconds > this.idle[part] + QUIET_SHARE);
      if (loud.length === 0) return;
      if (performance.now() > endsAtMs) throw new Error(`Still at work without requests: ${loud.join(', ')}`);
    }
  }

  /** CPU seconds of each part, less the CPU seconds that the part uses without load. */
  busy({ seconds, cpuSeconds }: Usage): PerPart {
    return perPart((part) => Math.max(0, cpuSeconds[part] - seconds * this.idle[part]));
  }

  private readCpu(): PerPart {
    return perPart((part) => (this.ids.has(part) ? readCpuSeconds(this.get(part)) : 0));
  }
}

/**
 * Resident memory of a process after collections of garbage; the process has `collect-garbage.js` loaded.
 * @param pauseMs time for a collection
 */
export async function readMemory(processId: number, pauseMs: number): Promise<number> {
  for (let collections = 0; collections < 2; collections++) {
    process.kill(processId, 'SIGUSR2');
    await delay(pauseMs);
  }
  return Number(readFileSync(`/proc/${processId}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES;
}
