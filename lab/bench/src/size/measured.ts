import type { FleetCosts } from '../fleet/fleet-costs';
import { type PerPart, perPart } from '../fleet/processes';

const parts = (values: Partial<PerPart>): PerPart => perPart((part) => values[part] ?? 0);

/**
 * Costs of 2026-11-23, in the form of `costs` of `bench fleet --json`: events of one token, and saves of all tokens into
 * the Redis of the pool (lab/bench/README.md). A run of `bench fleet` on an idle machine is to replace them.
 */
export const MEASURED: FleetCosts = {
  tokenUs: { worker: 19, gateway: 33 },
  heldUs: parts({}),
  saveUs: parts({ redis: 175, coordinator: 35, worker: 147, nats: 8 }),
  responseUs: parts({ redis: 235, coordinator: 113, balancer: 40, nats: 36 }),
  gatewayResponseUs: parts({}),
  engineUs: 0,
  requestBytes: { worker: 500_000, gateway: 36_000 },
  heldRequests: { worker: 1_024, gateway: 4_000 },
  tokenBytes: 10,
  savedOverMade: 9,
};

/** Memory of a worker without requests. */
export const WORKER_IDLE_BYTES = 128e6;

/** Memory of the Redis of a pool (docs/operations.md), and the time of a start. */
export const REDIS = {
  poolBytes: 5_000_000,
  runningBytes: 1_500,
  finishedBytes: 1_300,
  groupBytes: 650,
  leaseBytes: 480,
  serverBytes: 850,
  /** bench coordinator (a claim in pages of 128) and bench cost (an acquire in a burst): all start at once. */
  startUs: 29 + 17,
} as const;
