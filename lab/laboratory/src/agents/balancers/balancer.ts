/** A turn that needs a server. */
export interface TurnRequest {
  /** Id of the turn. */
  id: string;
  sessionId: string;
  groupId: string;
  parentId?: string;
  /** Number of the turn in its session, from 0. */
  number: number;
  contextTokens: number;
  /** First tokens of the context, which all sessions of the group have. */
  prefixTokens: number;
}

/** What a balancer sees of the simulated fleet. */
export interface FleetView {
  servers: number;
  /** KV memory of each server, tokens. */
  kvTokens: number;
  /** Simulated milliseconds, a whole number. */
  nowMs(): number;
  /**
   * Starts a turn on a server. `expectedTokens`: tokens of its context that the balancer expects in the cache there;
   * undefined: it expects nothing in particular.
   */
  start(turn: TurnRequest, server: number, expectedTokens?: number): void;
  /** Drops the context of a session from the cache of a server. */
  closeSession(server: number, sessionId: string): void;
  /** Calls back every so many seconds while sessions live. */
  every(seconds: number, action: () => void): void;
}

/** Rules that choose the server of each turn, and may let a turn wait. */
export interface Balancer {
  /** A turn needs a server: the balancer starts it, now or later. */
  request(turn: TurnRequest): void;
  /** A turn has ended on its server, with so many generated tokens. */
  ended(turn: TurnRequest, server: number, madeTokens: number): void;
  /** A session has ended with its last turn. */
  sessionOver(sessionId: string): void;
}

export type CreateBalancer = (fleet: FleetView) => Balancer;

/** Index of the least value; the first of equals. */
export function findLeast(values: readonly number[]): number {
  let least = 0;
  for (let index = 1; index < values.length; index++) if (values[index]! < values[least]!) least = index;
  return least;
}
