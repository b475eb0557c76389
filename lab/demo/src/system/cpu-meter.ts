import type { ManagedProcess, ServerHandle } from '@broomwagon/testing';
import { readCpuSeconds } from '../../../bench/src/generator/measurement';

/** A process whose CPU time counts. */
export interface CountedProcess {
  name: string;
  pid: number;
}

/** All processes of a system but the engines: servers that were started, not given, applications, and this process. */
export function withPids(
  servers: readonly Pick<ServerHandle, 'kind' | 'pid'>[],
  applications: readonly Pick<ManagedProcess, 'name' | 'pid'>[],
  engines: string,
): CountedProcess[] {
  const found = [
    ...servers.map(({ kind, pid }) => ({ name: kind, pid })),
    ...applications.filter(({ name }) => name !== engines),
    { name: 'trainer', pid: process.pid },
  ];
  return found.flatMap(({ name, pid }) => (pid === undefined ? [] : [{ name, pid }]));
}

/** CPU seconds by program; replicas of a program count together. */
export type CpuSeconds = Record<string, number>;

/** CPU time of processes since the creation of the meter. */
export class CpuMeter {
  private readonly start: Map<number, number>;

  /** @param list processes that run now; a process that was restarted has a new pid, and counts from its last start */
  constructor(
    private readonly list: () => CountedProcess[],
    private readonly read: (pid: number) => number = readCpuSeconds,
  ) {
    this.start = new Map(list().map(({ pid }) => [pid, read(pid)]));
  }

  /** Returns the CPU seconds since the start, by program; null where the system reports none (outside Linux). */
  seconds(): CpuSeconds | null {
    const byProgram: CpuSeconds = {};
    for (const { name, pid } of this.list()) {
      const seconds = this.read(pid) - (this.start.get(pid) ?? 0);
      if (Number.isNaN(seconds)) return null;
      const program = name.replace(/-\d+$/, '');
      byProgram[program] = (byProgram[program] ?? 0) + seconds;
    }
    return byProgram;
  }
}
