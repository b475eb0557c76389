import { planRuns } from '../options/tail-options';
import type { TrainerOptions } from '../options/trainer-options';

/** Number of requests in flight at once, and the settings that follow from it. */
export interface Load {
  /** Most requests of one round. */
  requestsPerRound: number;
  workerConcurrency: number;
  inflightPerEngine: number;
  /** Simulated seconds per second. */
  speed: number;
}

/** Settings that the processes of one run have in common. */
export interface SystemPlan {
  /** Settings of NATS and Redis for a program that connects as this user. */
  settingsOf: (user: string) => Record<string, string>;
  pool: string;
  runId: string;
  load: Load;
  /** URLs of real engines; empty: simulated engines on this machine. */
  engineUrls: readonly string[];
  /** Whether moves are planned and made in simulated time. */
  rebalances: boolean;
}

/** Intervals of runs with moves, milliseconds: checks and partial saves are more frequent in faster simulated time. */
const REBALANCE_CHECK_MS = 100;
const PARTIAL_SAVE_INTERVAL_MS = 2_000;

/** Simulated tokens per second of all engines at the start of a round that two cores can carry (measured). */
const SAFE_TOKENS_PER_SECOND = 800_000;
/** Tokens per second of one request on a simulated engine with a small batch. */
const TOKENS_PER_SECOND = 60;
/** Highest over-provision that `auto` chooses. */
const MAX_OF_AUTO = 2;
/** Least number of requests that each worker runs at a time: as many as a worker without a setting. */
const MIN_WORKER_CONCURRENCY = 64;
/** Highest speed at which our own work in a short step is small beside the simulated time. */
const MAX_SPEED = 35;

/** Computes the load of a run from its options. */
export function computeLoad(options: TrainerOptions): Load {
  const requests = planRuns(options).map(({ policy }) => {
    const { name, overProvision = name === 'auto' ? MAX_OF_AUTO : 1, sampleOverProvision = 1 } = policy;
    return Math.ceil(options.groups * overProvision) * Math.ceil(options.samples * sampleOverProvision);
  });
  const requestsPerRound = Math.max(...requests);
  const engines = options.engineUrls.length > 0 ? options.engineUrls.length : options.engines;
  return {
    requestsPerRound,
    // The others have room for half as much again, so that one dead worker does not stop the round. A trainer that
    // connects to the running system later may have larger rounds.
    workerConcurrency: Math.max(MIN_WORKER_CONCURRENCY, Math.ceil((requestsPerRound * 1.5) / options.workers)),
    inflightPerEngine: Math.max(64, Math.ceil((requestsPerRound * 2) / engines)),
    speed: options.speed ?? speedFor(requestsPerRound),
  };
}

/** Speed that is not too slow to watch, and slow enough that the simulated clocks keep up and our own work is small. */
export function speedFor(requestsPerRound: number): number {
  const speed = SAFE_TOKENS_PER_SECOND / (requestsPerRound * TOKENS_PER_SECOND);
  return Math.max(1, Math.min(MAX_SPEED, Math.round(speed)));
}

/** Environment of every application of ours. */
export function serviceEnvironment(plan: SystemPlan, app: string): Record<string, string> {
  const hosts = plan.engineUrls.length > 0 ? plan.engineUrls.map((url) => new URL(url).host) : ['127.0.0.1'];
  return {
    ...plan.settingsOf(app),
    POOLS: plan.pool,
    ENGINE_ALLOW_LIST: process.env.ENGINE_ALLOW_LIST || hosts.join(','),
    ...(plan.rebalances && app === 'trainer-coordinator' && { REBALANCE_CHECK_MS: String(REBALANCE_CHECK_MS) }),
  };
}

/** Environment of a process that takes leases. */
function holderEnvironment(plan: SystemPlan, app: string, name = app): Record<string, string> {
  return { ...serviceEnvironment(plan, app), POOL: plan.pool, WORKER_ID: `${name}-${plan.runId}` };
}

export function gatewayEnvironment(plan: SystemPlan, apiKeys: 'on' | 'off'): Record<string, string> {
  return { ...holderEnvironment(plan, 'gateway'), API_KEYS: apiKeys };
}

export function workerEnvironment(plan: SystemPlan, name: string): Record<string, string> {
  return {
    ...holderEnvironment(plan, 'worker', name),
    CONCURRENCY: String(plan.load.workerConcurrency),
    ...(plan.rebalances && { PARTIAL_SAVE_INTERVAL_MS: String(PARTIAL_SAVE_INTERVAL_MS) }),
  };
}
