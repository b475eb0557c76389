import { cpus } from 'node:os';
import { LIMITS } from '@broomwagon/contracts';
import { connectRedis } from '@broomwagon/state';
import { median } from '../arithmetic';
import type { Stage } from '../stage';
import { plainTable } from '../table';
import { timeAllScripts, type CaseSizes } from './all-cases';
import { leastTimes, type Timing } from './timed-runner';

/** Longest time that a script of any operation may block Redis. */
const MAX_MICROSECONDS = 5_000;
const SHAPES = [
  [4, LIMITS.samplesPerGroup],
  [256, 1],
  [16, 16],
] as const;
const FULL: CaseSizes = { servers: 10_000, leases: 100_000, shapes: SHAPES, jobs: 7_642, running: 512, repeats: 3 };
const QUICK: CaseSizes = { ...FULL, servers: 1_000, leases: 10_000, repeats: 2 };

interface Row {
  script: string;
  input: string;
  calls: number;
  medianMicroseconds: number;
  /** Time of the slowest call; the time of a call is the least over its repeats, in which Redis did nothing else. */
  mostMicroseconds: number;
}

/** `bench scripts`: time for which each script blocks Redis with the largest inputs that its limits allow. */
export async function benchScripts(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const { redis: server } = stage.services;
  const state = stage.state(server);
  const redis = connectRedis({ url: server.url, commandTimeoutMs: 60_000 });
  stage.onStop(async () => void (await redis.quit()));
  const timings = await timeAllScripts(state, redis, isQuick ? QUICK : FULL);
  const rows = timings.flatMap(toRows);
  const report = { measuredAt: new Date().toISOString(), machine: `${cpus().length} x ${cpus()[0]?.model}`, rows };
  return { report, text: formatRows(rows) };
}

function toRows(timing: Timing): Row[] {
  const { script, input } = timing;
  const times = leastTimes(timing);
  if (times.length === 0) return [];
  const mostMicroseconds = Math.max(...times);
  return [{ script, input, calls: times.length, medianMicroseconds: Math.round(median(times)), mostMicroseconds }];
}

function formatRows(rows: readonly Row[]): string {
  const slowest = rows.toSorted((one, other) => other.mostMicroseconds - one.mostMicroseconds);
  const cells = slowest.map(({ script, input, calls, medianMicroseconds, mostMicroseconds }) => [
    script,
    input,
    String(calls),
    String(medianMicroseconds),
    String(mostMicroseconds),
    mostMicroseconds <= MAX_MICROSECONDS ? 'yes' : 'no',
  ]);
  return plainTable(['script', 'input', 'calls', 'median us', 'most us', 'under 5 ms'], cells);
}
