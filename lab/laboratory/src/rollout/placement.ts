import type { Router } from '../routing/router';
import { SimulatedFleet, type FleetOptions } from '../simulation/simulated-fleet';
import type { VirtualClock } from '../simulation/virtual-clock';
import { keptTokens, type Sample } from './sample';

/** Fixed seconds of a move, besides the time for its tokens: with a transfer of KV, and if KV is computed again. */
const TRANSFER_SETUP_SECONDS = 0.02;
const RECOMPUTE_SETUP_SECONDS = 0.05;

/** Transfer of KV between servers; without it a move computes its context again. */
export interface KvTransfer {
  bytesPerToken: number;
  bytesPerSecond: number;
}

/** Starts and stops samples on engines, and keeps their token counts and the loads of the router. */
export class Placement {
  readonly fleet: SimulatedFleet<Sample>;
  moves = 0;
  movedTokens = 0;

  constructor(
    readonly clock: VirtualClock,
    options: FleetOptions,
    readonly router: Router,
    onFinish: (sample: Sample, server: number) => void,
    readonly transfer?: KvTransfer,
  ) {
    this.fleet = new SimulatedFleet(clock, options, (server, sample) => {
      sample.carriedTokens = sample.targetTokens - sample.request.tokens;
      this.leave(sample, server);
      onFinish(sample, server);
    });
  }

  /**
   * Runs a sample on a server for which the router has counted it.
   * @param untilTokens length at which the sample stops there; default: its end
   * @param hasKv whether the server has the sample's KV, or gets it by transfer
   */
  start(sample: Sample, server: number, { untilTokens = sample.lengthTokens, hasKv = false } = {}): void {
    const kept = keptTokens(sample);
    sample.server = server;
    sample.targetTokens = Math.min(untilTokens, sample.lengthTokens);
    this.fleet.add(server, {
      id: sample,
      contextTokens: sample.promptTokens + kept,
      prefillTokens: hasKv ? 0 : sample.promptTokens + kept,
      remainingTokens: sample.targetTokens - kept,
      prefixes: [{ key: sample.prompt, tokens: sample.promptTokens }],
    });
  }

  /** Stops a sample, on a server or not. Returns the tokens of its attempt. */
  stop(sample: Sample): number {
    const { server } = sample;
    if (server === undefined) return sample.carriedTokens;
    sample.carriedTokens += this.fleet.remove(server, sample);
    this.leave(sample, server);
    return sample.carriedTokens;
  }

  /** Moves a running or waiting sample, which runs again once its context is transferred or computed again. */
  move(sample: Sample, to: number): void {
    const from = sample.server!;
    const isWaiting = this.fleet.engine(from).state(sample) === 'waiting';
    sample.carriedTokens += this.fleet.remove(from, sample);
    sample.server = undefined;
    this.router.moved(from, to, sample.routeRequest);
    this.moves += 1;
    sample.moves += 1;
    sample.movedAtSeconds = this.clock.now;
    // A waiting sample has no KV to send.
    const tokens = isWaiting ? 0 : sample.promptTokens + keptTokens(sample);
    this.movedTokens += tokens;
    const { transfer } = this;
    const attempt = sample.attempt;
    let seconds = RECOMPUTE_SETUP_SECONDS;
    if (transfer && !isWaiting) {
      seconds = TRANSFER_SETUP_SECONDS + (tokens * transfer.bytesPerToken) / transfer.bytesPerSecond;
      this.fleet.stall(from, seconds);
      this.fleet.stall(to, seconds);
    }
    this.clock.after(seconds, () => {
      const isHeld = sample.request.state === 'claimed' || sample.request.state === 'running';
      if (sample.attempt !== attempt || !isHeld) this.router.released(to, sample.routeRequest);
      else this.start(sample, to, { hasKv: transfer !== undefined && !isWaiting });
    });
  }

  /** Drops all cached prefixes, which new weights make useless. */
  forgetCaches(): void {
    for (const engine of this.fleet.engines) engine.forgetIdle();
  }

  private leave(sample: Sample, server: number): void {
    sample.server = undefined;
    this.router.released(server, sample.routeRequest);
  }
}
