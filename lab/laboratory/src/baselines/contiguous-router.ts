import type { Router, RouteRequest } from '../routing/router';

/**
 * verl before its load balancer: the batch is cut into as many contiguous chunks as there are workers, so that the
 * samples of a prompt run on one server.
 */
export class ContiguousRouter implements Router {
  readonly name = 'contiguous';
  private asked = 0;

  constructor(
    private readonly servers: number,
    /** Requests of one batch. */
    private readonly batch: number,
  ) {}

  choose(_request: RouteRequest): number {
    return Math.floor(((this.asked++ % this.batch) * this.servers) / this.batch);
  }

  released(): void {}
  moved(): void {}
}
