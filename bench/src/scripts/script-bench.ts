import { cpus } from 'node:os';
import { connectRedis } from '@broomwagon/state';
import { KEY_PREFIX, type Stage } from '../stage';
import { plainTable } from '../table';
import { RoundCases } from './round-cases';
import { RoutingCases } from './routing-cases';
import { TimedRunner, type Timing } from './timed-runner';

/** No script of any operation may hold Redis up for longer. */
const MOST_MICROSECONDS = 5_000;
const SLOWEST_SKIPPED = 0.1;
const FULL = { servers: 10_000, leases: 100_000 };
const QUICK = { servers: 1_000, leases: 10_000 };

interface Row {
  script: string;
  input: string;
  calls: number;
  medianMicroseconds: number;
  /** Of nine calls in ten: the others paid for what Redis does now and then, such as growing a table. */
  mostMicroseconds: number;
}

/** `bench scripts`: how long each script holds Redis up with the largest inputs that its limits allow. */
export async function benchScripts(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const { redis: server } = stage.services;
  const state = stage.state(server);
  const redis = connectRedis({ url: server.url, commandTimeoutMs: 60_000 });
  stage.onStop(async () => void (await redis.quit()));
  const runner = new TimedRunner(redis, KEY_PREFIX);
  const [worker] = await state.fill('rounds', 0, 1);
  await new RoundCases(runner, 'rounds', worker!).run();
  await new RoutingCases(runner, 'routing', isQuick ? QUICK : FULL).run(state);
  const rows = [...runner.timings.values()].map(rowOf);
  const report = { measuredAt: new Date().toISOString(), machine: `${cpus().length} x ${cpus()[0]?.model}`, rows };
  return { report, text: textOf(rows) };
}

function rowOf({ script, input, times }: Timing): Row {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!;
  return {
    script,
    input,
    calls: times.length,
    medianMicroseconds: at(0.5),
    mostMicroseconds: at(1 - SLOWEST_SKIPPED),
  };
}

function textOf(rows: readonly Row[]): string {
  const slowest = rows.toSorted((one, other) => other.mostMicroseconds - one.mostMicroseconds);
  const cells = slowest.map(({ script, input, calls, medianMicroseconds, mostMicroseconds }) => [
    script,
    input,
    String(calls),
    String(medianMicroseconds),
    String(mostMicroseconds),
    mostMicroseconds <= MOST_MICROSECONDS ? 'yes' : 'no',
  ]);
  return plainTable(['script', 'input', 'calls', 'median us', 'most us (9 of 10)', 'under 5 ms'], cells);
}
