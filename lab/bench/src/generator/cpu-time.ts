import { readFileSync } from 'node:fs';

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
