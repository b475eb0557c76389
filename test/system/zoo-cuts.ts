import { randomUUID } from 'node:crypto';
import type { EngineDialect, OperationName, ReplyOf, RequestOf, WeightSyncMode } from '@broomwagon/contracts';
import { expect } from 'vitest';
import type { GatewayBench } from './gateway-bench';

/** A running response, and the servers of its pool. */
export interface CutContext {
  system: GatewayBench;
  /** Server that runs the response; undefined: the response has ended, or waits. */
  serverId: string | undefined;
  disconnect: () => void;
}

/** An event that cuts a response. */
export interface ZooCut {
  name: string;
  /** Dialects of engines that have the event; absent: all. */
  dialects?: readonly EngineDialect[];
  headers?: Record<string, string>;
  /** Whether the response ends at the cut. */
  ends?: 'abort' | 'nothing';
  /** The response stays on its engine: unless the engine fails, it is sent once. */
  isUncut?: true;
  /** Cuts the response; the engines generate nothing meanwhile. */
  cut: (context: CutContext) => Promise<void>;
  /** Lets the response continue. */
  resume?: (context: CutContext) => Promise<void>;
  /** Undoes the cut after the end of the response. */
  restore?: (context: CutContext) => Promise<void>;
}

const SERVERS = ['s1', 's2'] as const;
/** Longer than a response needs to its end. */
const DRAIN_MS = 60_000;
const RESUMES_ABORTS = { 'x-broomwagon-on-engine-abort': 'resume' };

let events = 0;

function call<Name extends OperationName>(
  { system: { bench } }: CutContext,
  operation: Name,
  body: RequestOf<Name>,
): Promise<ReplyOf<Name>> {
  return bench.client.call(bench.pool, operation, body);
}

async function steer({ system }: CutContext, path: string, body: object = {}): Promise<void> {
  expect((await system.gateway.post(path, body)).status, path).toBe(200);
}

/** Highest weight version of the servers. */
async function readVersion(context: CutContext): Promise<number> {
  const { servers } = await call(context, 'server.list', {});
  return Math.max(0, ...servers.map(({ weightVersion }) => weightVersion));
}

const PAUSES = {
  vllm: { pause: '/pause?mode=abort', resume: '/resume' },
  sglang: { pause: '/pause_generation', resume: '/continue_generation' },
};

/** Pause in which engines end all their requests, and its end. */
const createPause = (dialect: 'vllm' | 'sglang'): ZooCut => ({
  name: 'a pause by the trainer that ends all requests',
  dialects: [dialect],
  headers: RESUMES_ABORTS,
  cut: (context) => steer(context, PAUSES[dialect].pause),
  resume: (context) => steer(context, PAUSES[dialect].resume),
});

/**
 * Change of weights. In mode `abort` the response is cut and continued; in mode `keep` it continues on its engine, which
 * pauses until the end of the change; in mode `wait` the change ends after the response.
 */
const changeWeights = (mode: WeightSyncMode): ZooCut => ({
  name: `a change of weights in mode ${mode}`,
  ...(mode === 'abort' ? {} : { isUncut: true }),
  cut: async (context) => {
    events += 1;
    const version = (await readVersion(context)) + 1;
    const waitMs = mode === 'keep' ? undefined : 0;
    await call(context, 'weights.begin', { syncId: `sync-${events}`, version, mode, waitMs });
  },
  resume: async (context) => {
    const readSync = async () => (await call(context, 'weights.status', {})).sync!;
    if (mode !== 'keep') await expect.poll(async () => (await readSync()).running).toBe(0);
    const { syncId, version: weightVersion } = await readSync();
    for (const serverId of SERVERS) await call(context, 'server.update', { serverId, weightVersion });
    await call(context, 'weights.commit', { syncId });
  },
});

const drain = (name: string, deadlineMs: number, more?: { isUncut: true }): ZooCut => ({
  name,
  ...more,
  cut: async (context) => {
    const { serverId } = context;
    if (serverId !== undefined) await call(context, 'server.drain', { serverId, deadlineMs });
  },
  restore: async (context) => {
    const { system, serverId } = context;
    if (serverId === undefined) return;
    const listed = async () => (await call(context, 'server.list', {})).servers.map((server) => server.serverId);
    await expect.poll(listed).not.toContain(serverId);
    const start = { instanceId: `start-${(events += 1)}`, weightVersion: await readVersion(context) };
    await (serverId === 's1' ? system.registerFirst(start) : system.registerSecond(start));
  },
});

export const ZOO_CUTS: readonly ZooCut[] = [
  drain('a drain of the server', DRAIN_MS, { isUncut: true }),
  drain('the deadline of a drain', 1),
  {
    name: 'a move to the other server',
    cut: async (context) => {
      const { serverId } = context;
      if (serverId === undefined) return;
      const { leases } = await call(context, 'lb.leases', { serverId });
      const targetServerId = SERVERS.find((one) => one !== serverId)!;
      const moves = leases.map(({ leaseId }) => ({ leaseId, targetServerId }));
      if (moves.length === 0) return;
      const { results } = await call(context, 'rebalance.execute', { planId: randomUUID(), moves });
      // A lease may have ended meanwhile, and the target may take no requests yet after a change of weights.
      for (const { refusal } of results) expect(refusal ?? 'server-ready').toMatch(/^(server-|unknown-lease)/);
    },
  },
  changeWeights('abort'),
  changeWeights('keep'),
  changeWeights('wait'),
  createPause('vllm'),
  createPause('sglang'),
  {
    name: 'an abort of all requests by the operator',
    ends: 'abort',
    cut: (context) => steer(context, '/abort_request', { abort_all: true }),
  },
  {
    name: 'a disconnect of the client',
    ends: 'nothing',
    cut: ({ disconnect }) => Promise.resolve(disconnect()),
  },
];
