import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, resolve } from 'node:path';
import { median, significant } from '../arithmetic';
import type { Stage } from '../stage';
import { plainTable } from '../table';

const POOL = 'verl';
const PROGRAM = 'lab/bench/python_load.py';
const WAYS = ['broomwagon actor', 'broomwagon leases'] as const;

interface Row {
  way: 'verl' | (typeof WAYS)[number];
  processes: number;
  callers: number;
  round: number;
  pairsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
}
/** CPU time of the Python process, microseconds. A pair is an acquire and its release. */
interface ClientCpu {
  bareRequest: number;
  pair: number;
  bareRequest64: number;
  pair64: number;
}
interface Measured {
  rows: Row[];
  clientCpuUs: ClientCpu;
  inFlightAfter: number;
  versions: Record<string, string>;
}
/** Median over rounds of the ratio to verl's balancer in the same round. */
interface Ratio {
  way: (typeof WAYS)[number];
  processes: number;
  callers: number;
  pairs: number;
  p99: number;
}

/** `bench verl`: pairs of acquire and release through verl's balancer, and through Broomwagon in two ways. */
export async function benchVerl(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  const python = process.env.VERL_PYTHON;
  if (!python) {
    throw new Error(
      'VERL_PYTHON must name a Python with verl: `npm run test:python -- verl` installs one and prints it',
    );
  }
  await stage.start((line) => console.error(line));
  await stage.startApp('load-balancer', 'balancer', [POOL], stage.services.redis);
  const measured = await load(python, stage.services.nats.url, isQuick);
  const ratios = computeRatios(measured.rows);
  return { report: { ...measured, ratios }, text: formatReport(measured, ratios) };
}

async function load(python: string, natsUrl: string, isQuick: boolean): Promise<Measured> {
  const args = [PROGRAM, '--pool', POOL, '--seconds', isQuick ? '3' : '8', '--rounds', isQuick ? '3' : '5'];
  const child = spawn(python, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      NATS_URL: natsUrl,
      PYTHONPATH: [resolve('clients/python/src'), resolve('lab/bench')].join(delimiter),
      RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO: '0',
    },
  });
  let output = '';
  child.stdout.on('data', (text) => (output += String(text)));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${PROGRAM} ended with ${code}`);
  return JSON.parse(output.trim().split('\n').at(-1)!) as Measured;
}

/** The rows of one way under the load of `row`, by round. */
function filterRounds(rows: readonly Row[], way: Row['way'], row: Pick<Row, 'processes' | 'callers'>): Row[] {
  return rows.filter((each) => each.way === way && each.processes === row.processes && each.callers === row.callers);
}

function computeRatios(rows: readonly Row[]): Ratio[] {
  const loads = rows.filter(({ way, round }) => way === 'verl' && round === 0);
  return loads.flatMap((load) =>
    WAYS.map((way) => {
      const verls = filterRounds(rows, 'verl', load);
      const over = (field: 'pairsPerSecond' | 'p99Ms') =>
        median(filterRounds(rows, way, load).map((row, round) => row[field] / verls[round]![field]));
      const { processes, callers } = load;
      return { way, processes, callers, pairs: over('pairsPerSecond'), p99: over('p99Ms') };
    }),
  );
}

function formatReport({ rows, clientCpuUs, inFlightAfter, versions }: Measured, ratios: readonly Ratio[]): string {
  const cells = rows
    .filter(({ round }) => round === 0)
    .map((load) => {
      const of = (field: 'pairsPerSecond' | 'p50Ms' | 'p99Ms') =>
        String(significant(median(filterRounds(rows, load.way, load).map((row) => row[field]))));
      const ratio = ratios.find(
        ({ way, processes, callers }) => way === load.way && processes === load.processes && callers === load.callers,
      );
      const over = ratio ? [ratio.pairs.toFixed(2), ratio.p99.toFixed(2)] : ['', ''];
      const what = [`${load.processes} x ${load.callers}`, load.way];
      return [...what, of('pairsPerSecond'), of('p50Ms'), of('p99Ms'), ...over];
    });
  const headings = ['processes x callers', 'way', 'pairs/s', 'p50 ms', 'p99 ms', 'pairs over verl', 'p99 over verl'];
  const cpu = Object.entries(clientCpuUs).map(([what, us]) => `${what} ${us.toFixed(0)} us`);
  return [
    plainTable(headings, cells),
    '',
    `CPU of one Python process: ${cpu.join(', ')}.`,
    `Requests in flight at the end: ${inFlightAfter}. ${JSON.stringify(versions)}`,
  ].join('\n');
}
