import { TypedClient, connectNats, MessagingClient } from '@broomwagon/messaging';
import { summarizeLatencies, type LatencySummary } from '../arithmetic';
import type { BenchWorker } from '../generator/jobs';
import type { Stage } from '../stage';
import { plainTable } from '../table';

const POOL = 'hung';
const SERVERS = 64;
/** Rate at which callers of a hung replica collapsed. */
const RATE = 2_000;
const QUICK_RATE = 500;
const WINDOW_MS = 10_000;
/** Timeout of each call. */
const TIMEOUT_MS = 10_000;

interface Row extends LatencySummary {
  what: string;
  asked: number;
  answered: number;
}

/** `bench hung`: acquires at a fixed rate through two replicas, of which one is stopped (SIGSTOP) in the second row. */
export async function benchHungReplica(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const { redis, nats } = stage.services;
  const [worker] = await stage.state(redis).fill(POOL, SERVERS, 1);
  await stage.startApp('load-balancer', 'well', [POOL], redis);
  const victim = await stage.startApp('load-balancer', 'hung', [POOL], redis);
  const client = new TypedClient(new MessagingClient(await connectNats({ url: nats.url })));
  stage.onStop(() => client.messaging.connection.close());
  const rate = isQuick ? QUICK_RATE : RATE;
  const run = (what: string) => atRate(client, worker!, what, rate);
  await run('warm-up');
  const well = await run('both well');
  process.kill(victim, 'SIGSTOP');
  let hung: Row;
  try {
    hung = await run('one hung');
  } finally {
    process.kill(victim, 'SIGCONT');
  }
  const ratios = {
    answeredOfAsked: hung.answered / hung.asked,
    p50HungOverWell: hung.p50Ms / well.p50Ms,
    p99HungOverWell: hung.p99Ms / well.p99Ms,
  };
  const rows = [well, hung];
  const cells = rows.map(({ what, asked, answered, p50Ms, p99Ms }) => [
    what,
    String(asked),
    (answered / asked).toFixed(4),
    p50Ms.toFixed(1),
    p99Ms.toFixed(1),
  ]);
  const table = plainTable([`${rate}/s, two replicas`, 'asked', 'answered of asked', 'p50 ms', 'p99 ms'], cells);
  const says = `Hung over well: p50 ${ratios.p50HungOverWell.toFixed(2)}, p99 ${ratios.p99HungOverWell.toFixed(1)}.`;
  return { report: { ratePerSecond: rate, rows, ratios }, text: `${table}\n\n${says}` };
}

/** Runs an open loop of acquires, each of which is released. */
async function atRate(client: TypedClient, worker: BenchWorker, what: string, rate: number): Promise<Row> {
  const asked = (rate * WINDOW_MS) / 1_000;
  const latenciesMs: number[] = [];
  const one = async (index: number): Promise<void> => {
    const beganAtMs = performance.now();
    const item = { acquireId: `${what.replace(' ', '-')}-${index}`, requestId: 'job/g/0', ...worker };
    const options = { timeoutMs: TIMEOUT_MS };
    const lease = await client.call(POOL, 'lb.acquire', item, options).catch(() => undefined);
    if (lease === undefined) return;
    latenciesMs.push(performance.now() - beganAtMs);
    const release = { leaseId: lease.leaseId, outcome: 'finished' as const };
    await client.call(POOL, 'lb.release', release, options).catch(() => undefined);
  };
  const calls: Promise<void>[] = [];
  const beganAtMs = performance.now();
  while (calls.length < asked) {
    const due = Math.min(asked, ((performance.now() - beganAtMs) / 1_000) * rate);
    while (calls.length < due) calls.push(one(calls.length));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.all(calls);
  return { what, asked, answered: latenciesMs.length, ...summarizeLatencies(latenciesMs) };
}
