import { readFileSync } from 'node:fs';
import { summarizeLatencies } from '../arithmetic';
import type { Job, JobResult, ListJob } from './jobs';

/** A measurement: the warm-up, then the time that counts. */
export class Measurement {
  private readonly latenciesMs: number[] = [];
  private startedAtMs = Number.POSITIVE_INFINITY;
  private endedAtMs = Number.POSITIVE_INFINITY;
  private completed = 0;
  private cpuAtStart: number[] = [];
  private cpuAtEnd: number[] = [];

  constructor(private readonly job: Exclude<Job, ListJob>) {
    setTimeout(() => this.begin(), job.warmUpMs);
  }

  /** Whether the measured time is over, so that nothing new is sent. */
  get isOver(): boolean {
    return this.endedAtMs !== Number.POSITIVE_INFINITY;
  }

  /** Records a request that ends now and started (or was due) at `beganAtMs`. */
  ended(beganAtMs: number): void {
    const now = performance.now();
    if (now < this.startedAtMs || this.isOver) return;
    this.completed++;
    this.latenciesMs.push(now - beganAtMs);
  }

  result(heldAcquireIds: string[] = []): JobResult {
    const seconds = (this.endedAtMs - this.startedAtMs) / 1_000;
    const { completed } = this;
    return {
      ...summarizeLatencies(this.latenciesMs),
      completed,
      seconds,
      perSecond: completed / seconds,
      cpuSeconds: this.cpuAtEnd.map((value, index) => value - this.cpuAtStart[index]!),
      heldAcquireIds,
    };
  }

  private begin(): void {
    const processIds = this.job.processIds ?? [];
    this.cpuAtStart = processIds.map(readCpuSeconds);
    this.startedAtMs = performance.now();
    setTimeout(() => {
      this.endedAtMs = performance.now();
      this.cpuAtEnd = processIds.map(readCpuSeconds);
    }, this.job.measureMs);
  }
}

/** Linux counts CPU time in hundredths of a second (USER_HZ) on every platform Node runs on. */
const TICKS_PER_SECOND = 100;

/** User and system time of a process so far, seconds; NaN where there is no /proc. */
export function readCpuSeconds(processId: number): number {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, 'latin1');
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th fields after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return Number.NaN;
  }
}
