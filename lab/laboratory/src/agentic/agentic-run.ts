import { RandomStream, type EngineParameters } from '@broomwagon/models';
import type { RouteRequest, Router } from '../routing/router';
import { SimulatedFleet } from '../simulation/simulated-fleet';
import { VirtualClock } from '../simulation/virtual-clock';
import { PrefixCache } from './prefix-cache';

/** Trajectories of many turns. Not calibrated: the numbers are the overlay of docs/laboratory.md. */
export interface AgenticSetup {
  servers: number;
  engine: EngineParameters;
  trajectories: number;
  samplesPerGroup: number;
  /** First context: system prompt, tools, task. */
  promptTokens: number;
  /** Lognormals: median, and standard deviation of the logarithm. */
  turns: { median: number; sigma: number; cap: number };
  madeTokens: { median: number; sigma: number };
  toolTokens: { median: number; sigma: number };
  toolSeconds: { median: number; sigma: number; timeoutShare: number; timeoutSeconds: number };
}

export interface AgenticResult {
  /** Of the trajectories, seconds. */
  meanSeconds: number;
  p90Seconds: number;
  maxSeconds: number;
  /** Context tokens found in a prefix cache / all context tokens. */
  cacheHitShare: number;
  preemptions: number;
}

interface Trajectory {
  routeRequest: RouteRequest & { sessionId: string };
  random: RandomStream;
  turnsLeft: number;
  contextTokens: number;
  madeTokens: number;
}

const CAPPED_MADE = 4_096;

/** Runs a batch of trajectories to their ends: every turn asks the router, then waits for its tool. */
export class AgenticRun {
  private readonly clock = new VirtualClock();
  private readonly fleet: SimulatedFleet<Trajectory>;
  private readonly caches: PrefixCache[];
  private readonly endedSeconds: number[] = [];
  private hitTokens = 0;
  private contextTokens = 0;

  constructor(
    private readonly setup: AgenticSetup,
    private readonly router: Router,
    private readonly seed: number,
  ) {
    const { servers, engine } = setup;
    this.fleet = new SimulatedFleet(this.clock, { servers, parameters: engine }, (server, one) =>
      this.turnEnds(server, one),
    );
    this.caches = Array.from({ length: servers }, () => new PrefixCache(engine.kvCapacityTokens));
  }

  run(): AgenticResult {
    for (let index = 0; index < this.setup.trajectories; index++) this.turnBegins(this.trajectory(index));
    this.clock.run();
    const ended = this.endedSeconds.toSorted((a, b) => a - b);
    return {
      meanSeconds: ended.reduce((sum, seconds) => sum + seconds, 0) / ended.length,
      p90Seconds: ended[Math.ceil(0.9 * ended.length) - 1]!,
      maxSeconds: ended.at(-1)!,
      cacheHitShare: this.hitTokens / this.contextTokens,
      preemptions: this.fleet.engines.reduce((sum, { totals }) => sum + totals.preemptions, 0),
    };
  }

  private trajectory(index: number): Trajectory {
    const { turns, samplesPerGroup, promptTokens } = this.setup;
    const random = new RandomStream('trajectory', this.seed, index);
    const sessionId = `t${index}`;
    const groupId = `g${Math.floor(index / samplesPerGroup)}`;
    const drawn = Math.round(lognormal(random, turns));
    return {
      routeRequest: { sessionId, groupId, requestId: sessionId, contextTokens: promptTokens },
      random,
      turnsLeft: Math.max(1, Math.min(turns.cap, drawn)),
      contextTokens: promptTokens,
      madeTokens: 0,
    };
  }

  private turnBegins(one: Trajectory): void {
    one.routeRequest.contextTokens = one.contextTokens;
    one.madeTokens = Math.max(1, Math.min(CAPPED_MADE, Math.round(lognormal(one.random, this.setup.madeTokens))));
    const server = this.router.choose(one.routeRequest)!;
    const hit = this.caches[server]!.take(one.routeRequest.sessionId);
    this.hitTokens += hit;
    this.contextTokens += one.contextTokens;
    this.fleet.add(server, {
      id: one,
      contextTokens: one.contextTokens,
      prefillTokens: one.contextTokens - hit,
      remainingTokens: one.madeTokens,
    });
    this.trim(server);
  }

  private turnEnds(server: number, one: Trajectory): void {
    this.router.released(server, one.routeRequest);
    one.contextTokens += one.madeTokens;
    this.caches[server]!.put(one.routeRequest.sessionId, one.contextTokens);
    this.trim(server);
    one.turnsLeft -= 1;
    if (one.turnsLeft === 0) {
      this.router.sessionOver?.(one.routeRequest.sessionId);
      this.endedSeconds.push(this.clock.now);
      return;
    }
    const { toolSeconds, toolTokens } = this.setup;
    const isTimeout = one.random.uniform() < toolSeconds.timeoutShare;
    const seconds = isTimeout ? toolSeconds.timeoutSeconds : lognormal(one.random, toolSeconds);
    one.contextTokens += Math.round(lognormal(one.random, toolTokens));
    this.clock.after(Math.min(seconds, toolSeconds.timeoutSeconds), () => this.turnBegins(one));
  }

  /** What runs comes first: cached contexts make room for it. */
  private trim(server: number): void {
    this.caches[server]!.trim(this.fleet.engine(server).kvTokensInUse);
  }
}

function lognormal(random: RandomStream, { median, sigma }: { median: number; sigma: number }): number {
  return median * Math.exp(sigma * random.normal());
}
