import { RandomStream } from '@broomwagon/models';
import type { Router, RouteRequest } from '../routing/router';

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
