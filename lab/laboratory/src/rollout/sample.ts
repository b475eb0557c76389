import type { ModelRequest } from '@broomwagon/models';
import type { RouteRequest } from '../routing/router';

/** A request of the round model as the simulation runs it. Compared by identity. */
export interface Sample {
  readonly request: ModelRequest;
  readonly prompt: number;
  readonly promptTokens: number;
  readonly routeRequest: RouteRequest;
  /** True length of this draw, tokens; only an oracle may look at it. */
  lengthTokens: number;
  /** Times it was started again, all its tokens thrown away. */
  draw: number;
  /** Fence of the attempt that runs. */
  attempt: number;
  /** Tokens this attempt made before it came to the server it is on: earlier chunks, moves. */
  carriedTokens: number;
  /** Length at which it leaves the server it is on: its end, or that of a chunk. */
  targetTokens: number;
  /** Moves so far, and when the last one was, seconds. */
  moves: number;
  movedAtSeconds: number;
  /** Where it runs; undefined while it waits or travels. */
  server?: number;
}

/** Tokens it has, but for those made on its present server. */
export function keptTokens(sample: Sample): number {
  return sample.request.tokens + sample.carriedTokens;
}
