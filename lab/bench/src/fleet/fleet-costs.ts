import type { PerPart } from './processes';

/** Measured costs of a fleet, from which `bench size` computes; CPU times are microseconds. */
export interface FleetCosts {
  /** A token in events of 64, with everything that a request in flight costs its holder except saves and its end. */
  tokenUs: { worker: number; gateway: number };
  /** A request of a worker in flight, for each second: the other processes, without saves. */
  heldUs: PerPart;
  /** A partial save. */
  saveUs: PerPart;
  /** A short response from its submission to its result, by a worker, and a call that is not streamed to a gateway. */
  responseUs: PerPart;
  gatewayResponseUs: PerPart;
  /** A registered engine, for each second: the probes of one load-balancer. */
  engineUs: number;
  /** Memory of a holder for a request in flight. */
  requestBytes: { worker: number; gateway: number };
  /** Requests that one process has held in flight. */
  heldRequests: { worker: number; gateway: number };
  /** Bytes of a stored token, and bytes of partial saves for one byte of a response. */
  tokenBytes: number;
  savedOverMade: number;
}
