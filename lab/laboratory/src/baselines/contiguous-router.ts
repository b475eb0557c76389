import type { Router, RouteRequest } from '../routing/router';

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
