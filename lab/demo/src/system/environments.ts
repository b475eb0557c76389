import { tailPolicyOf } from '../options/tail-options';
import type { TrainerOptions } from '../options/trainer-options';

/** How many requests are in flight at once, and what follows from it. */
export interface Load {
  /** Most requests of one round. */
  requestsPerRound: number;
  workerConcurrency: number;
  inflightPerEngine: number;
  /** Simulated seconds per second. */
  speed: number;
}

/** What the processes of one run have in common. */
export interface SystemPlan {
  /** Where NATS and Redis are, for a program that connects as this user. */
  settingsOf: (user: string) => Record<string, string>;
  pool: string;
  runId: string;
  load: Load;
  /** Where the engines are; of ours when there are none: this machine. */
  engineUrls: readonly string[];
  /** Moves are planned and made in simulated time. */
  rebalances: boolean;
}

/** Of runs with moves, milliseconds: simulated time is faster, so looks and partial saves are more frequent. */
const REBALANCE_CHECK_MS = 100;
const PARTIAL_SAVE_INTERVAL_MS = 2_000;

/** Simulated tokens a second at the start of a round that two cores carry, all engines together (measured). */
const SAFE_TOKENS_PER_SECOND = 800_000;
/** Tokens a second of one request on a simulated engine with a small batch. */
const TOKENS_PER_SECOND = 60;
/** Highest over-provision that `auto` chooses. */
const MAX_OF_AUTO = 2;
/** Requests that each worker runs at a time, at least: as many as a worker that is started without a setting. */
const MIN_WORKER_CONCURRENCY = 64;
/** Above it, our own work in a short step is no longer small beside the simulated time. */
const MAX_SPEED = 35;

/** The load of a run by its options. */
export function loadOf(options: TrainerOptions): Load {
  const { name, overProvision = name === 'auto' ? MAX_OF_AUTO : 1, sampleOverProvision = 1 } = tailPolicyOf(options);
  const requestsPerRound = Math.ceil(options.groups * overProvision) * Math.ceil(options.samples * sampleOverProvision);
  const engines = options.engineUrls.length > 0 ? options.engineUrls.length : options.engines;
  return {
    requestsPerRound,
    // One dead worker must not stop the round: the others have room for half as much again. A trainer that connects to
    // the running system next may have larger rounds.
    workerConcurrency: Math.max(MIN_WORKER_CONCURRENCY, Math.ceil((requestsPerRound * 1.5) / options.workers)),
    inflightPerEngine: Math.max(64, Math.ceil((requestsPerRound * 2) / engines)),
    speed: options.speed ?? speedFor(requestsPerRound),
  };
}

/** Fast enough not to bore, slow enough that the simulated clocks keep up and our own work stays small. */
export function speedFor(requestsPerRound: number): number {
  const speed = SAFE_TOKENS_PER_SECOND / (requestsPerRound * TOKENS_PER_SECOND);
  return Math.max(1, Math.min(MAX_SPEED, Math.round(speed)));
}

/** What every application of ours is told. */
export function serviceEnvironment(plan: SystemPlan, app: string): Record<string, string> {
  const hosts = plan.engineUrls.length > 0 ? plan.engineUrls.map((url) => new URL(url).host) : ['127.0.0.1'];
  return {
    ...plan.settingsOf(app),
    POOLS: plan.pool,
    ENGINE_ALLOW_LIST: process.env.ENGINE_ALLOW_LIST || hosts.join(','),
    ...(plan.rebalances && app === 'trainer-coordinator' && { REBALANCE_CHECK_MS: String(REBALANCE_CHECK_MS) }),
  };
}

/** What a process that takes leases is told besides. */
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
