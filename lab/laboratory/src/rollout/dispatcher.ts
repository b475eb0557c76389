import type { Placement } from './placement';
import type { Sample } from './sample';

/** Gives out the pending requests of a round, as `request.claim` does. */
export type Claim = (max: number) => Sample[];

/** Brings the requests of a round to servers. */
export interface Dispatcher {
  /** Requests are pending, or there is room: begins what may begin. */
  pump(): void;
  /** A sample has left its server by itself; false: it is not at its end and stays with the dispatcher. */
  left?(sample: Sample): boolean;
  /** A sample is not wanted any more. */
  forget?(sample: Sample): void;
}

/** As workers do it: each request in its turn goes to the server of the router, and waits when there is no room. */
export class ImmediateDispatcher implements Dispatcher {
  /** Claimed, and without a server. */
  private waiting: Sample[] = [];

  constructor(
    private readonly placement: Placement,
    private readonly claim: Claim,
  ) {}

  pump(): void {
    for (;;) {
      const sample = this.waiting[0] ?? this.claim(1)[0];
      if (!sample) return;
      const server = this.placement.router.choose(sample.routeRequest);
      if (server === undefined) {
        this.waiting[0] = sample;
        return;
      }
      this.waiting = [];
      this.placement.start(sample, server);
    }
  }

  forget(sample: Sample): void {
    this.waiting = this.waiting.filter((one) => one !== sample);
  }
}
