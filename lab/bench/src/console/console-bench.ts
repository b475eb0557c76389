import { setTimeout as delay } from 'node:timers/promises';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { hashOfToken } from '@broomwagon/state';
import { type HeldClaim, RoundFlow } from '../coordinator/round-flow';
import { fillPool } from '../fill-pool';
import { Progress } from '../progress';
import type { Stage } from '../stage';
import { plainTable } from '../table';
import { measureFrames } from './frames';
import { publishAttempts } from './publish-attempts';
import { type View, watchPage } from './watch-page';

const POOL = 'console';
const TOKEN = 'token-of-the-benchmark';
const SERVERS = 1_000;
const REQUESTS_PER_SERVER = 32;
const SAMPLES = 16;
const GROUPS = 1_024;
const WORKERS = 64;
const ATTEMPTS = 10_000;
const ONE_SAMPLE = { neededGroups: 1, groups: 1, samples: 1 };
/** Rate at which half of the samples finish; the others run as long as the browser watches. */
const FINISHED_PER_SECOND = 40;
/** The pages, with elements that their first views show last: a server of the fleet, or the groups of the round. */
const VIEWS: readonly View[] = [
  { page: 'fleet', address: '#/fleet', shown: 'tbody td:has-text("server-0")' },
  { page: 'round', address: '#/round?job=job', shown: 'text=/of 1,024 groups/' },
  { page: 'events', address: '#/events', shown: 'table' },
];

/**
 * `bench console`: the console in Chromium beside a pool of 1,000 servers and a round of 16,384 requests, which are
 * finished one after the other. Redis, NATS, load-balancer, trainer-coordinator and admin-api are real; no engine runs.
 */
export async function benchConsole(stage: Stage, isQuick: boolean): Promise<{ report: object; text: string }> {
  await stage.start((line) => console.error(line));
  const { redis, nats } = stage.services;
  const state = stage.state(redis);
  const processIds = [
    await stage.startApp('load-balancer', 'load-balancer', [POOL], redis),
    await stage.startApp('trainer-coordinator', 'trainer-coordinator', [POOL], redis),
  ];
  await stage.startApp('admin-api', 'admin-api', [POOL], redis, { ADMIN_TOKEN_SHA256: hashOfToken(TOKEN) });
  const connection = await connectNats({ url: nats.url });
  stage.onStop(() => connection.close());
  const client = new TypedClient(new MessagingClient(connection));
  const progress = new Progress(VIEWS.length + 2);

  progress.step('filling the pool');
  const workers = await fillPool(state, POOL, SERVERS, WORKERS, { maxInflight: REQUESTS_PER_SERVER });
  const shape = { neededGroups: GROUPS, groups: GROUPS, samples: SAMPLES };
  const flow = new RoundFlow(stage, client, POOL, 'job', workers, shape, processIds);
  await flow.open();
  await flow.submit();
  const { held } = await flow.claim(GROUPS * SAMPLES, 64);
  await state.hold(POOL, workers, GROUPS * SAMPLES);
  await flow.store(held);
  const control = new AbortController();
  const finishing = finishSteadily(flow, held.slice(0, held.length / 2), control);

  const url = `http://127.0.0.1:${stage.port('admin-api')}`;
  const rows = [];
  try {
    for (const view of VIEWS) {
      progress.step(`the page ${view.page}`);
      rows.push(await watchPage(view, { url, token: TOKEN }, isQuick));
    }
  } finally {
    control.abort();
    await finishing;
  }
  progress.step('a timeline');
  const timeline = new RoundFlow(stage, client, POOL, 'timeline', workers, ONE_SAMPLE, processIds);
  await timeline.open();
  const openedAtMs = (await client.call(POOL, 'round.list', { job: 'timeline' })).rounds[0]!.openedAtMs;
  await publishAttempts(connection, { pool: POOL, job: 'timeline', roundId: 'round', openedAtMs }, ATTEMPTS);
  const frames = await measureFrames(`${url}/#/timeline?job=timeline&token=${TOKEN}`, ATTEMPTS);
  progress.end();

  const cells = rows.map((row) => [
    row.page,
    row.firstViewMs.toFixed(0),
    row.pageCpuPercent.toFixed(1),
    row.browserCpuPercent.toFixed(1),
    row.heapMb.toFixed(0),
  ]);
  const head = ['page', 'first view, ms', 'CPU of the page, % of a core', 'of all of Chromium, %', 'heap, MB'];
  const frameCells = frames.map((row) => [
    row.action,
    String(row.redraws),
    row.redrawMs.toFixed(1),
    row.longestRedrawMs.toFixed(1),
    row.frameMs.toFixed(1),
    row.longestFrameMs.toFixed(1),
  ]);
  const frameHead = [`timeline of ${ATTEMPTS} bars`, 'redraws', 'redraw, ms', 'longest', 'frame, ms', 'longest'];
  const text = [plainTable(head, cells), '', plainTable(frameHead, frameCells)].join('\n');
  return { report: { servers: SERVERS, requests: GROUPS * SAMPLES, rows, frames }, text };
}

/** Finishes requests until `control` is aborted. */
async function finishSteadily(flow: RoundFlow, held: HeldClaim[], { signal }: AbortController): Promise<void> {
  for (let next = 0; !signal.aborted && next < held.length; next += FINISHED_PER_SECOND) {
    const pause = delay(1_000);
    await flow.complete(held.slice(next, next + FINISHED_PER_SECOND));
    await pause;
  }
}
