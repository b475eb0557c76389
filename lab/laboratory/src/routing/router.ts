/** A request for a server. */
export interface RouteRequest {
  /** Id of the group, which identifies siblings. */
  groupId: string;
  requestId: string;
  sessionId?: string;
  contextTokens: number;
}

/** Chooses servers, numbered from 0, and counts the requests on them. */
export interface Router {
  readonly name: string;
  /** Chooses a server and counts the request there; undefined if no server has room. */
  choose(routeRequest: RouteRequest): number | undefined;
  released(server: number, routeRequest: RouteRequest): void;
  /** Counts a move of a request to another server, which a mover has decided. */
  moved(from: number, to: number, routeRequest: RouteRequest): void;
  /** Forgets the session of an ended trajectory. */
  sessionOver?(sessionId: string): void;
}
