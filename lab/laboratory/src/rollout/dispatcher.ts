import type { Placement } from './placement';
import type { Sample } from './sample';

/** Claims pending requests of a round, as `request.claim` does. */
export type Claim = (max: number) => Sample[];

/** Starts the requests of a round on servers. */
export interface Dispatcher {
  /** Starts all requests that can start, after requests became pending or room became free. */
  pump(): void;
  /** Handles a sample that has left its server by itself. False: it is not at its end and stays with the dispatcher. */
  left?(sample: Sample): boolean;
  /** Forgets a sample that was stopped. */
  forget?(sample: Sample): void;
}

/** Dispatches as workers do: each request in turn goes to the server that the router chooses, or waits for room. */
export class ImmediateDispatcher implements Dispatcher {
  /** Claimed samples without a server. */
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
