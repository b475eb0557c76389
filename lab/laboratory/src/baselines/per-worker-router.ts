import type { Router, RouteRequest } from '../routing/router';

/**
 * Routing of verl before its global balancer: each worker has a part of the trajectories and its own counts. A session
 * gets the server that its worker has chosen least, and keeps it; a worker does not know the choices of the others.
 */
export class PerWorkerRouter implements Router {
  readonly name = 'per-worker';
  private readonly serverOf = new Map<string, number>();
  private readonly given: number[][];

  /** @param workerOf returns the worker of a session */
  constructor(
    servers: number,
    workers: number,
    private readonly workerOf: (sessionId: string) => number,
  ) {
    this.given = Array.from({ length: workers }, () => new Array<number>(servers).fill(0));
  }

  choose({ sessionId = '' }: RouteRequest): number {
    let server = this.serverOf.get(sessionId);
    if (server === undefined) {
      const given = this.given[this.workerOf(sessionId)]!;
      server = given.indexOf(Math.min(...given));
      given[server]! += 1;
      this.serverOf.set(sessionId, server);
    }
    return server;
  }

  released(): void {}
  moved(): void {}
}
