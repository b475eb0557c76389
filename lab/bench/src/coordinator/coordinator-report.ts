import type { PayloadReport } from '../payload/payload-bench';
import { plainTable } from '../table';
import { WINDOW } from './round-flow';

/** Requests in flight when the last needed group is accepted. */
export const IN_FLIGHT = 10_000;

/** Rows of the report, and their labels. */
export const ROWS = {
  echo: `raw nats.js echo, window ${WINDOW}`,
  'script claim': 'raw FCALL of claim, one a call',
  'script complete': 'raw FCALL of complete',
  submit: 'submit, 128 groups of 16 a call, one at a time',
  claim: 'claim, one a call',
  'claim 64': 'claim, 64 a call',
  complete: 'complete',
  cut: 'cut: from the last completion to the last abort',
  requeue: 'confirm a cut: queued again',
} as const;
/** Name of a row. */
export type RowName = keyof typeof ROWS;

/** Content of the file of `--json`; README.md of bench explains each number. */
export interface CoordinatorReport {
  measuredAt: string;
  machine: string;
  rounds: number;
  ratios: {
    claimOverEcho: number;
    completeOverEcho: number;
    claimOverScript: number;
    completeOverScript: number;
    requeue10MBOver1kB: number;
    complete10MBOver1kB: number;
    queue1000000Over1000: number;
  };
  cutFanoutMs: number;
  /** Requests per second; and CPU microseconds for one request in rows that use our services. */
  rows: {
    name: RowName;
    label: string;
    perSecond: number;
    coordinatorMicroseconds?: number;
    redisMicroseconds?: number;
  }[];
  /** A large round without surplus groups: its requests per second, also as a multiple of the rate with 128 x 16. */
  large: {
    groups: number;
    samples: number;
    seconds: number;
    perSecond: Record<string, number>;
    overSmall: Record<string, number>;
  };
  queues: { groups: number; operations: { operation: string; microseconds: number }[] }[];
  payload: PayloadReport;
}

/** The report as tables for a terminal. */
export function formatReport({
  machine,
  rounds,
  ratios,
  rows,
  large,
  queues,
  cutFanoutMs,
  payload,
}: CoordinatorReport): string {
  const count = (value: number) => Math.round(value).toLocaleString('en');
  const rowCells = rows.map(({ label, perSecond, coordinatorMicroseconds: ours, redisMicroseconds: redis }) => [
    label,
    count(perSecond),
    ours?.toFixed(0) ?? '',
    redis?.toFixed(0) ?? '',
  ]);
  const largeCells = Object.entries(large.perSecond).map(([name, perSecond]) => [
    name,
    count(perSecond),
    large.overSmall[name]!.toFixed(2),
  ]);
  const [small, long] = queues;
  const queueCells = small!.operations.map(({ operation, microseconds }, index) => {
    const other = long!.operations[index]!.microseconds;
    return [operation, count(microseconds), count(other), (other / microseconds).toFixed(2)];
  });
  const payloadCells = payload.rows.map(({ operation, payload: size, microseconds, over1kB }) => [
    operation,
    size,
    count(microseconds),
    over1kB.toFixed(2),
  ]);
  return [
    '',
    `${machine}; medians of ${rounds} interleaved rounds of 128 x 16, half of it cut`,
    '',
    plainTable(['', 'requests per second', 'CPU us coordinator', 'CPU us Redis'], rowCells),
    '',
    `One of ${large.groups.toLocaleString('en')} x ${large.samples}: ${large.seconds.toFixed(1)} s`,
    '',
    plainTable(['', 'requests per second', '/ 128 x 16'], largeCells),
    '',
    plainTable(['long-tail queue, us', count(small!.groups), count(long!.groups), 'ratio'], queueCells),
    '',
    plainTable(['payload', '', 'us', '/ 1 kB'], payloadCells),
    '',
    `Last abort of ${IN_FLIGHT.toLocaleString('en')} in flight: ${cutFanoutMs.toFixed(0)} ms after the last completion.`,
    `claim / echo ${ratios.claimOverEcho}, complete / echo ${ratios.completeOverEcho}; ` +
      `of the raw transition ${ratios.claimOverScript} and ${ratios.completeOverScript}.`,
    '',
  ].join('\n');
}
