import type { Part, PerPart } from './processes';

/** Tokens of a large and a small save. */
export const SAVED_TOKENS = { large: 1_000, small: 250 } as const;

/** Measured costs of a fleet, from which `bench size` computes; CPU times are microseconds. */
export interface FleetCosts {
  /** A token in events of 64, with everything that a request in flight costs its holder except saves and its end. */
  tokenUs: { worker: number; gateway: number };
  /** A request of a worker in flight, for each second: the other processes, without saves. */
  heldUs: PerPart;
  /** A partial save of 1,000 tokens, and of 250. */
  saveUs: PerPart;
  smallSaveUs: PerPart;
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

/** CPU of a part for a partial save, microseconds: a fixed part and a part for each token. */
export function splitSave({ saveUs, smallSaveUs }: Pick<FleetCosts, 'saveUs' | 'smallSaveUs'>, part: Part) {
  const { large, small } = SAVED_TOKENS;
  const tokenUs = Math.max(0, (saveUs[part] - smallSaveUs[part]) / (large - small));
  return { fixedUs: Math.max(0, saveUs[part] - large * tokenUs), tokenUs };
}
