import type { AbortRequestsRequest } from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { summarizeLatencies, significant, type LatencySummary } from '../arithmetic';
import { benchPlan } from '../plan/plan-bench';
import { Progress } from '../progress';
import type { Stage } from '../stage';
import { plainTable } from '../table';
import { InFlight } from './in-flight';

/** Least number of requests in flight during the measurement. */
const IN_FLIGHT = 10_000;
const WAIT_MS = 10_000;

/** Kinds of aborts, measured in turn; each abort has one target. */
const KINDS = {
  request: 'one request',
  group: 'one group',
  session: 'one session of a caller that only routes',
  routed: 'one request of a caller that only routes',
} as const;
type Kind = keyof typeof KINDS;

/** Content of the file of `--json`. */
export interface AbortReport {
  measuredAt: string;
  inFlight: number;
  /** Time from sending `request.abort` for one request to the answer `aborted`. */
  abortP50Ms: number;
  abortP99Ms: number;
  /** One plan of the rebalancer for 1,000 servers and 100,000 requests, as in `bench plan`. */
  planMs: number;
  /** `answer`: time from the request to its answer; `command`: time from the request to the command at the holder. */
  rows: { kind: Kind; aborts: number; answer: LatencySummary; command: LatencySummary }[];
}

/** `bench abort`: aborts one after the other while 10,000 requests run on workers that confirm at once. */
export async function benchAbort(stage: Stage, isQuick: boolean): Promise<{ report: AbortReport; text: string }> {
  const aborts = isQuick ? 100 : 500;
  await stage.start((line) => console.error(line));
  const { nats, redis } = stage.services;
  const pool = 'abort';
  await Promise.all([
    stage.startApp('load-balancer', 'load-balancer', [pool], redis),
    stage.startApp('trainer-coordinator', 'trainer-coordinator', [pool], redis),
  ]);
  const connection = await connectNats({ url: nats.url });
  stage.onStop(() => connection.close());
  const client = new TypedClient(new MessagingClient(connection));
  const kinds = Object.keys(KINDS) as Kind[];
  const progress = new Progress(kinds.length + 2);
  try {
    progress.step(`${IN_FLIGHT} requests`);
    const inFlight = await InFlight.start(client, stage.state(redis), pool, {
      requests: IN_FLIGHT + 3 * aborts,
      sessions: 3 * aborts,
    });
    const rows: AbortReport['rows'] = [];
    for (const kind of kinds) {
      progress.step(KINDS[kind]);
      rows.push({ kind, aborts, ...(await measure(client, pool, inFlight, kind, aborts)) });
    }
    progress.step('a plan');
    const { planMs } = (await benchPlan(undefined, isQuick)).report;
    const { p50Ms, p99Ms } = rows.find(({ kind }) => kind === 'request')!.answer;
    const report = {
      measuredAt: new Date().toISOString(),
      inFlight: IN_FLIGHT,
      abortP50Ms: significant(p50Ms),
      abortP99Ms: significant(p99Ms),
      planMs: significant(planMs),
      rows,
    };
    return { report, text: formatReport(report) };
  } finally {
    progress.end();
  }
}

async function measure(client: TypedClient, pool: string, inFlight: InFlight, kind: Kind, aborts: number) {
  const answers: number[] = [];
  const commands: number[] = [];
  // The first aborts do not count: V8 compiles the code meanwhile.
  for (let index = -Math.ceil(aborts / 10); index < aborts; index++) {
    const { selector, requestId } = inFlight.next(kind);
    const told = inFlight.waitForAbort(requestId);
    const startedAtMs = performance.now();
    const body: AbortRequestsRequest = { abortId: `${kind}${index}`, waitMs: WAIT_MS, ...selector };
    const { results } = await client.call(pool, 'request.abort', body, { timeoutMs: 2 * WAIT_MS });
    const answeredMs = performance.now() - startedAtMs;
    if (results.length !== 1 || results[0]!.outcome !== 'aborted') throw new Error(JSON.stringify(results));
    if (index < 0) continue;
    answers.push(answeredMs);
    commands.push((await told) - startedAtMs);
  }
  return { answer: summarizeLatencies(answers), command: summarizeLatencies(commands) };
}

function formatReport({ rows, inFlight, planMs }: AbortReport): string {
  const cells = rows.map(({ kind, answer, command }) => [
    KINDS[kind],
    ...[answer.p50Ms, answer.p99Ms, command.p50Ms, command.p99Ms].map((value) => value.toFixed(2)),
  ]);
  const table = plainTable(['', 'answer p50 ms', 'p99 ms', 'command p50 ms', 'p99 ms'], cells);
  return `\n${inFlight} requests in flight, one abort at a time; the answer waits for the confirmation\n\n${table}\n\nOne plan: ${planMs} ms\n`;
}
