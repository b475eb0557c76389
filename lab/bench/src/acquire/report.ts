import { cpus } from 'node:os';
import { median, significant } from '../arithmetic';
import type { JobResult } from '../generator/jobs';
import { plainTable } from '../table';
import type { Scaling } from './scaling';
import {
  OPEN_RATES,
  listRates,
  type CpuMicroseconds,
  type OverOtherBuild,
  type Row,
  type Throughput,
} from './throughput';

/** Content of the file of `--json`; README.md of bench explains each number. */
export interface AcquireReport {
  measuredAt: string;
  machine: string;
  rounds: number;
  ratios: { acquireOverRawHandler: number; acquireOverEcho: number; pairsOverEcho: number };
  /** Only with `--against`. */
  overOtherBuild?: OverOtherBuild;
  openLoop: { rate: number; p50Ms: number; p99Ms: number }[];
  acquireMany2048Ms: number;
  longestBurstScriptMs: number;
  scaling: { servers10000Over10: number; leases1000000Over0: number; sessions100000Over512: number };
  bytesPerLease: number;
  bytesPerSession: number;
  cpuSecondsPer1000Decisions: { replica: number; redis: number };
  /** CPU time of every process for one request, microseconds. */
  cpuMicroseconds: { echo: CpuMicroseconds; acquire: CpuMicroseconds };
  rows: { name: string; label: string; perSecond: number; p50Ms: number; p95Ms: number; p99Ms: number }[];
  costs: { pool: string; label: string; cpuMicroseconds: number; perSecond: number }[];
}

const over = (row: Row, field: 'p50Ms' | 'p95Ms' | 'p99Ms') =>
  significant(median(row.results.map((result: JobResult) => result[field])));

export function acquireReport(throughput: Throughput, scaling: Scaling, rounds: number): AcquireReport {
  const cpuMicroseconds = {
    echo: rounded(throughput.cpuMicroseconds('echo')),
    acquire: rounded(throughput.cpuMicroseconds('acquire')),
  };
  const { replica, redis } = cpuMicroseconds.acquire;
  return {
    measuredAt: new Date().toISOString(),
    machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`,
    rounds,
    ratios: {
      acquireOverRawHandler: significant(throughput.ratio('acquire', 'raw')),
      acquireOverEcho: significant(throughput.ratio('acquire', 'echo')),
      pairsOverEcho: significant(throughput.ratio('pairs-512', 'echo')),
    },
    overOtherBuild: throughput.overOtherBuild(),
    openLoop: OPEN_RATES.map((rate) => {
      const row = throughput.row(`open-${rate}`);
      return { rate, p50Ms: over(row, 'p50Ms'), p99Ms: over(row, 'p99Ms') };
    }),
    acquireMany2048Ms: over(throughput.row('many'), 'p50Ms'),
    longestBurstScriptMs: throughput.longestBurstScriptMs,
    scaling: {
      servers10000Over10: significant(scaling.ratio('servers-10000', 'servers-10')),
      leases1000000Over0: significant(scaling.ratio('leases-1000000', 'leases-0')),
      sessions100000Over512: significant(scaling.ratio('sessions-100000', 'sessions-512')),
    },
    bytesPerLease: Math.round(scaling.bytesPerLease),
    bytesPerSession: Math.round(scaling.bytesPerSession),
    cpuSecondsPer1000Decisions: { replica: replica / 1_000, redis: redis / 1_000 },
    cpuMicroseconds,
    rows: throughput.rows.map((row) => ({
      name: row.name,
      label: row.label,
      perSecond: Math.round(median(listRates(row))),
      p50Ms: over(row, 'p50Ms'),
      p95Ms: over(row, 'p95Ms'),
      p99Ms: over(row, 'p99Ms'),
    })),
    costs: scaling.pools.map((sized) => ({
      pool: sized.pool,
      label: sized.label,
      cpuMicroseconds: significant(scaling.medianCpuMicroseconds(sized)),
      perSecond: Math.round(median(sized.perSecond)),
    })),
  };
}

function rounded(cpu: CpuMicroseconds): CpuMicroseconds {
  return Object.fromEntries(Object.entries(cpu).map(([name, value]) => [name, significant(value)])) as CpuMicroseconds;
}

/** The report as text. */
export function acquireText(report: AcquireReport, throughput: Throughput, scaling: Scaling): string {
  const rows = report.rows.map(({ label, perSecond, p50Ms, p95Ms, p99Ms }, index) => {
    const { name } = throughput.rows[index]!;
    // An open loop has a given rate, and bursts run one at a time: neither has a rate to compare.
    const hasRate = !name.startsWith('open') && name !== 'many';
    const ratios = (['echo', 'script', 'raw'] as const).map((other) =>
      hasRate ? throughput.ratio(name, other).toFixed(2) : '',
    );
    const latencies = [p50Ms, p95Ms, p99Ms].map((value) => value.toFixed(2));
    return [label, hasRate ? perSecond.toLocaleString('en') : '', ...latencies, ...ratios];
  });
  const costs = report.costs.map(({ label, cpuMicroseconds, perSecond }, index) => {
    const sized = scaling.pools[index]!;
    const ratio = scaling.ratio(sized.pool, scaling.findBaseline(sized));
    return [label, cpuMicroseconds.toFixed(1), ratio.toFixed(2), perSecond.toLocaleString('en')];
  });
  const { echo, acquire } = report.cpuMicroseconds;
  const other = report.overOtherBuild;
  const against = (kind: 'acquire' | 'pairs') => {
    const { rate, cpu } = other![kind];
    return `${kind} ${significant(rate)} of the rate, ${significant(cpu)} of the CPU of replica and Redis`;
  };
  return [
    '',
    `${report.machine}; medians of ${report.rounds} interleaved rounds`,
    '',
    plainTable(['', 'per second', 'p50 ms', 'p95 ms', 'p99 ms', '/ echo', '/ FCALL', '/ raw handler'], rows),
    '',
    plainTable(['acquire in a pool with', 'CPU us', 'ratio', 'per second'], costs),
    '',
    `CPU us of an echo: generator ${echo.generator}, NATS ${echo.nats}, responder ${echo.echo}.`,
    `CPU us of an acquire: generator ${acquire.generator}, NATS ${acquire.nats}, replica ${acquire.replica}, Redis ${acquire.redis}.`,
    `Longest transition of a burst: ${report.longestBurstScriptMs.toFixed(2)} ms.`,
    ...(other ? [`Over the other build, window 512: ${against('acquire')}; ${against('pairs')}.`] : []),
    `Redis memory: ${report.bytesPerLease} bytes for a live lease, ${report.bytesPerSession} for an idle session.`,
    '',
  ].join('\n');
}
