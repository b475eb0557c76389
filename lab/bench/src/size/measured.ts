import type { FleetCosts } from '../fleet/fleet-costs';
import { type PerPart, perPart } from '../fleet/processes';

const parts = (values: Partial<PerPart>): PerPart => perPart((part) => values[part] ?? 0);

/** `costs` of `bench fleet --json` of 2026-11-29 on two idle cores, with measurements of 30 s for saves. */
export const MEASURED: FleetCosts = {
  tokenUs: { worker: 1.09, gateway: 2.42 },
  heldUs: parts({ gateway: 0.57 }),
  saveUs: parts({ nats: 5.2, redis: 26, payloads: 123, coordinator: 20.8, worker: 196 }),
  smallSaveUs: parts({ nats: 5.2, redis: 41.7, payloads: 48.6, balancer: 5.2, coordinator: 15.6, worker: 217 }),
  responseUs: parts({
    nats: 97.7,
    redis: 417,
    payloads: 50.3,
    balancer: 68.7,
    coordinator: 256,
    worker: 398,
    trainer: 49.6,
  }),
  gatewayResponseUs: parts({ nats: 58.6, redis: 117, balancer: 115, gateway: 615 }),
  engineUs: 660,
  requestBytes: { worker: 35_900, gateway: 80_400 },
  heldRequests: { worker: 11_472, gateway: 6_848 },
  tokenBytes: 30.3,
  savedOverMade: 0.958,
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
