import { randomBytes } from 'node:crypto';
import { EVENTS_STREAM, eventSubject } from '@broomwagon/contracts';
import { connectNats, ensureStream } from '@broomwagon/messaging';
import { hashOfToken } from '@broomwagon/state';
import { medianRatio, median, significant } from '../arithmetic';
import type { JobResult } from '../generator/jobs';
import { Progress } from '../progress';
import type { Stage } from '../stage';
import { plainTable } from '../table';
import type { ReadersJob, ReadersResult } from './readers.main';

/** Pool of the acquires; its events go to the readers. */
const POOL = 'events';
/** Pool whose events have no readers. */
const UNREAD_POOL = 'unread';
const SLOW_POOL = 'slow';
const SERVERS = 64;
const READERS = 10_000;
const QUICK_READERS = 1_000;
const SLOW_READERS = 20;
const PAIRS_PER_SECOND = 500;
const EVENTS_PER_SECOND = 2;
const EVENT_BYTES = 300;
/** Rate of events for slow readers: higher, so that the buffers of the kernel are soon full. */
const SLOW_EVENTS_PER_SECOND = 20;
const SLOW_EVENT_BYTES = 100_000;
const ROUNDS = 5;
const QUICK_ROUNDS = 3;
const MEASURE_MS = 6_000;
const WARM_UP_MS = 2_000;

interface Case {
  label: string;
  pool: string;
  perSecond: number;
  bytes: number;
  results: JobResult[];
}

/** `bench events`: acquires at a fixed rate while events go to no reader, to 10,000, or to readers that do not read. */
export async function benchEvents(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const { redis, nats } = stage.services;
  const connection = await connectNats({ url: nats.url });
  stage.onStop(() => connection.close());
  const subjects = [eventSubject('*', '>')];
  await ensureStream(connection, { name: EVENTS_STREAM, subjects, maxBytes: 268_435_456, maxAgeMs: 86_400_000 });
  const workers = await stage.state(redis).fill(POOL, SERVERS);
  const balancer = await stage.startApp('load-balancer', 'balancer', [POOL], redis);
  const token = randomBytes(16).toString('hex');
  await stage.startApp('admin-api', 'admin-api', [POOL], redis, {
    ADMIN_TOKEN_SHA256: hashOfToken(token),
    MAX_EVENT_READERS: String(READERS + SLOW_READERS),
    RATE_LIMIT_PER_TOKEN: '1000000',
    RATE_LIMIT_PER_ADDRESS: '1000000',
  });
  const port = stage.port('admin-api');
  const readers = stage.child<ReadersJob, ReadersResult>('events/readers.main.js');
  const slow = stage.child<ReadersJob, ReadersResult>('events/readers.main.js');
  const count = isQuick ? QUICK_READERS : READERS;
  const rounds = isQuick ? QUICK_ROUNDS : ROUNDS;
  const progress = new Progress(2 * rounds + 3);
  progress.step(`opening ${count} streams`);
  await readers.ask({ kind: 'open', port, token, pool: POOL, count, reads: true });

  const measure = async (one: Case): Promise<void> => {
    progress.step(one.label);
    const body = JSON.stringify({ type: 'round.progressed', pool: one.pool, sequence: 1, text: 'x'.repeat(one.bytes) });
    const timer = setInterval(
      () => connection.nats.publish(eventSubject(one.pool, 'round.progressed'), body),
      1_000 / one.perSecond,
    );
    const load = { pool: POOL, workers, ratePerSecond: PAIRS_PER_SECOND, warmUpMs: WARM_UP_MS, measureMs: MEASURE_MS };
    const processIds = [balancer, ...(redis.pid ? [redis.pid] : [])];
    one.results.push(await stage.generator.ask({ kind: 'open', ...load, processIds }));
    clearInterval(timer);
  };
  const plain = { perSecond: EVENTS_PER_SECOND, bytes: EVENT_BYTES };
  const without: Case = { label: 'no reader', pool: UNREAD_POOL, ...plain, results: [] };
  const read: Case = { label: `${count} readers`, pool: POOL, ...plain, results: [] };
  const unread: Case = {
    label: `${SLOW_READERS} that do not read`,
    pool: SLOW_POOL,
    perSecond: SLOW_EVENTS_PER_SECOND,
    bytes: SLOW_EVENT_BYTES,
    results: [],
  };
  await measure({ ...without, label: 'warming up', results: [] });
  const before = await readers.ask({ kind: 'count' });
  for (let round = 0; round < rounds; round++) {
    await measure(without);
    await measure(read);
  }
  const after = await readers.ask({ kind: 'count' });
  await slow.ask({ kind: 'open', port, token, pool: SLOW_POOL, count: SLOW_READERS, reads: false });
  await measure(unread);
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const cut = [...page.matchAll(/^broomwagon_event_readers_cut_total\S* (\d+)$/gm)].map(([, value]) => Number(value));
  const slowReadersCut = cut.reduce((sum, one) => sum + one, 0);

  const seconds = (rounds * (WARM_UP_MS + MEASURE_MS)) / 1_000;
  const ratio = (of: (result: JobResult) => number) =>
    significant(medianRatio(read.results.map(of), without.results.map(of)), 3);
  const ratios = {
    p50: ratio(({ p50Ms }) => p50Ms),
    p99: ratio(({ p99Ms }) => p99Ms),
    perSecond: ratio(({ perSecond }) => perSecond),
    cpuPerAcquire: ratio(cpuMicroseconds),
  };
  const rows = [without, read, unread].map(({ label, results }) => [
    label,
    median(results.map(({ p50Ms }) => p50Ms)).toFixed(2),
    median(results.map(({ p99Ms }) => p99Ms)).toFixed(2),
    median(results.map(({ perSecond }) => perSecond)).toFixed(0),
    median(results.map(cpuMicroseconds)).toFixed(0),
  ]);
  const report = {
    readers: count,
    readersLeft: after.open,
    eventsToReadersPerSecond: Math.round((after.events - before.events) / seconds),
    slowReaders: SLOW_READERS,
    slowReadersCut,
    ratios,
  };
  const head = [`acquires at ${PAIRS_PER_SECOND}/s, events to`, 'p50 ms', 'p99 ms', 'per second', 'CPU us per acquire'];
  const text = [
    plainTable(head, rows),
    '',
    `${count} readers over none: p50 ${ratios.p50}, p99 ${ratios.p99}, CPU per acquire ${ratios.cpuPerAcquire}.`,
    `${report.eventsToReadersPerSecond} events a second reached ${after.open} readers.`,
    `${slowReadersCut} of ${SLOW_READERS} slow readers were cut off.`,
  ];
  return { report, text: text.join('\n') };
}

/** CPU time of load-balancer and Redis for one pair of acquire and release. */
function cpuMicroseconds({ cpuSeconds, completed }: JobResult): number {
  return (cpuSeconds.reduce((sum, one) => sum + one, 0) / completed) * 1e6;
}
