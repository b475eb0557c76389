import type { ModelRequest } from '@broomwagon/models';
import type { RouteRequest } from '../routing/router';

/** State of a request of the round model in the simulation. Compared by identity. */
export interface Sample {
  readonly request: ModelRequest;
  readonly prompt: number;
  readonly promptTokens: number;
  readonly routeRequest: RouteRequest;
  /** True length of this draw, tokens; only an oracle may read it. */
  lengthTokens: number;
  /** Number of restarts with all tokens discarded. */
  draw: number;
  /** Fence of the present attempt. */
  attempt: number;
  /** Tokens that this attempt generated before it reached its present server: in earlier chunks, or before moves. */
  carriedTokens: number;
  /** Length at which the sample leaves its present server: at its end, or at the end of a chunk. */
  targetTokens: number;
  /** Number of moves so far, and time of the last move, seconds. */
  moves: number;
  movedAtSeconds: number;
  /** Server of the sample; undefined while it waits in the dispatcher or is being moved. */
  server?: number;
}

/** Tokens of the sample without the tokens generated on its present server. */
export function keptTokens(sample: Sample): number {
  return sample.request.tokens + sample.carriedTokens;
}
