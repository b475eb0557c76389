/** Who asks for a server. */
export interface RouteRequest {
  /** Of the group, so that siblings are known. */
  groupId: string;
  requestId: string;
  sessionId?: string;
  contextTokens: number;
}

/** Chooses servers, numbered from 0, and is told when a request has left. */
export interface Router {
  readonly name: string;
  /** The server, which counts as taken; undefined when none has room. */
  choose(routeRequest: RouteRequest): number | undefined;
  released(server: number, routeRequest: RouteRequest): void;
  /** The request went to another server by somebody else's decision. */
  moved(from: number, to: number, routeRequest: RouteRequest): void;
  /** A trajectory is over. */
  sessionOver?(sessionId: string): void;
}
