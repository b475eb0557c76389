import { RandomStream } from '@broomwagon/models';
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

/**
 * Routing of verl before its load balancer: the batch is cut into one contiguous chunk per server, so that the samples
 * of a prompt run on one server.
 */
export class ContiguousRouter implements Router {
  readonly name = 'contiguous';
  private asked = 0;

  constructor(
    private readonly servers: number,
    /** Number of requests of one batch. */
    private readonly batch: number,
  ) {}

  choose(_request: RouteRequest): number {
    return Math.floor(((this.asked++ % this.batch) * this.servers) / this.batch);
  }

  released(): void {}
  moved(): void {}
}

/** Chooses a random server. */
export class RandomRouter implements Router {
  readonly name = 'random';
  private readonly random: RandomStream;

  constructor(
    private readonly servers: number,
    seed: number,
  ) {
    this.random = new RandomStream('random-router', seed);
  }

  choose(): number {
    return Math.floor(this.random.uniform() * this.servers);
  }

  released(): void {}
  moved(): void {}
}

/** Routes each session to the server of its hash, whatever the loads are. */
export class StaticHashRouter implements Router {
  readonly name = 'static-hash';

  constructor(private readonly servers: number) {}

  choose({ sessionId, requestId }: RouteRequest): number {
    return Math.floor(new RandomStream('static-hash', sessionId ?? requestId).uniform() * this.servers);
  }

  released(): void {}
  moved(): void {}
}

/** Placeholder for no router: the dispatcher itself chooses servers. */
export const unrouted: Router = {
  name: 'none',
  choose: () => undefined,
  released: () => undefined,
  moved: () => undefined,
};
