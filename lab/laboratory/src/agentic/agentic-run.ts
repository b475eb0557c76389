import { RandomStream, type EngineParameters } from '@broomwagon/models';
import type { RouteRequest, Router } from '../routing/router';
import { SimulatedFleet } from '../simulation/simulated-fleet';
import { VirtualClock } from '../simulation/virtual-clock';
import { PrefixCache } from './prefix-cache';

/** Parameters of trajectories with many turns. Not calibrated: the numbers are the overlay of docs/laboratory.md. */
export interface AgenticSetup {
  servers: number;
  engine: EngineParameters;
  trajectories: number;
  /** Most trajectories at once; the next one starts when one ends. Absent: all start together. */
  concurrency?: number;
  samplesPerGroup: number;
  /** Tokens of the first context: system prompt, tools, task. */
  promptTokens: number;
  /** Longest context: a longer one is replaced by the first context, and finds nothing in a prefix cache. */
  contextCapTokens?: number;
  /** Lognormal distributions (also below): median, and standard deviation of the logarithm. */
  turns: { median: number; sigma: number; cap: number };
  /** Share of the variance of ln(turns) that the trajectories of a group have in common, 0 to 1; default 0. */
  turnsPromptShare?: number;
  madeTokens: { median: number; sigma: number; cap: number };
  toolTokens: { median: number; sigma: number };
  toolSeconds: { median: number; sigma: number; timeoutShare: number; timeoutSeconds: number };
}

export interface AgenticResult {
  /** Durations of the trajectories, seconds. */
  meanSeconds: number;
  p90Seconds: number;
  maxSeconds: number;
  /** Durations of the groups, from the first turn of any trajectory to the last turn of all, seconds. */
  groups: { meanSeconds: number; p90Seconds: number };
  /** Mean duration of a turn, from its request to its last token, seconds. */
  meanTurnSeconds: number;
  /** Context tokens found in a prefix cache / all context tokens. */
  cacheHitShare: number;
  preemptions: number;
}

interface Trajectory {
  routeRequest: AgenticRequest;
  random: RandomStream;
  turnsLeft: number;
  contextTokens: number;
  madeTokens: number;
  /** Start times of the first and of the present turn, seconds. */
  firstAt: number;
  beganAt: number;
}

/** A router outside this process, such as the load-balancer. */
export interface RemoteRouter {
  choose(routeRequest: AgenticRequest): Promise<number>;
  released(server: number, routeRequest: AgenticRequest): Promise<void>;
}

export type AgenticRequest = RouteRequest & { sessionId: string; groupId: string };

/** Runs a batch of trajectories to their ends: every turn gets a server from the router, and waits for its tool. */
export class AgenticRun {
  private readonly clock = new VirtualClock();
  private readonly fleet: SimulatedFleet<Trajectory>;
  private readonly caches: PrefixCache[];
  private readonly endedSeconds: number[] = [];
  private readonly groups = new Map<string, { firstAt: number; endedAt: number }>();
  private begun = 0;
  private turnSeconds = 0;
  private turns = 0;
  private hitTokens = 0;
  private contextTokens = 0;
  /** Pending calls to the router, in order: a turn has left its server, or needs one. */
  private calls: { one: Trajectory; left?: number; isOver?: boolean }[] = [];

  constructor(
    private readonly setup: AgenticSetup,
    private readonly seed: number,
  ) {
    const { servers, engine } = setup;
    this.fleet = new SimulatedFleet(this.clock, { servers, parameters: engine }, (server, one) =>
      this.turnEnds(server, one),
    );
    this.caches = Array.from({ length: servers }, () => new PrefixCache(engine.kvCapacityTokens));
  }

  run(router: Router): AgenticResult {
    for (const { one, left, isOver } of this.callsInTime()) {
      if (left === undefined) this.placed(one, router.choose(one.routeRequest)!);
      else router.released(left, one.routeRequest);
      if (isOver) router.sessionOver?.(one.routeRequest.sessionId);
    }
    return this.result();
  }

  /** Runs all sessions with an asynchronous router. Virtual time stands still during a call of the router. */
  async runRemotely(router: RemoteRouter): Promise<AgenticResult> {
    for (const { one, left } of this.callsInTime()) {
      if (left === undefined) this.placed(one, await router.choose(one.routeRequest));
      else await router.released(left, one.routeRequest);
    }
    return this.result();
  }

  /** Yields all calls to the router until the last trajectory ends; time moves on after all calls of an instant. */
  private *callsInTime(): Generator<AgenticRun['calls'][number]> {
    const { trajectories, concurrency = trajectories } = this.setup;
    const first = Math.min(concurrency, trajectories);
    while (this.begun < first) this.trajectoryBegins();
    while (this.calls.length > 0) {
      for (const call of this.calls.splice(0)) yield call;
      this.clock.run(() => this.calls.length > 0);
    }
  }

  private result(): AgenticResult {
    const groupSeconds = [...this.groups.values()].map(({ firstAt, endedAt }) => endedAt - firstAt);
    return {
      ...meanAndP90(this.endedSeconds),
      maxSeconds: Math.max(...this.endedSeconds),
      groups: meanAndP90(groupSeconds),
      meanTurnSeconds: this.turnSeconds / this.turns,
      cacheHitShare: this.hitTokens / this.contextTokens,
      preemptions: this.fleet.engines.reduce((sum, { totals }) => sum + totals.preemptions, 0),
    };
  }

  private trajectoryBegins(): void {
    if (this.begun < this.setup.trajectories) this.turnBegins(this.trajectory(this.begun++));
  }

  private trajectory(index: number): Trajectory {
    const { turns, samplesPerGroup, turnsPromptShare = 0, promptTokens } = this.setup;
    const random = new RandomStream('trajectory', this.seed, index);
    const sessionId = `t${index}`;
    const groupId = `g${Math.floor(index / samplesPerGroup)}`;
    const group = new RandomStream('turns', this.seed, groupId).normal();
    const rank = Math.sqrt(turnsPromptShare) * group + Math.sqrt(1 - turnsPromptShare) * random.normal();
    const drawn = Math.round(turns.median * Math.exp(turns.sigma * rank));
    return {
      routeRequest: { sessionId, groupId, requestId: sessionId, contextTokens: promptTokens },
      random,
      turnsLeft: Math.max(1, Math.min(turns.cap, drawn)),
      contextTokens: promptTokens,
      madeTokens: 0,
      beganAt: 0,
      firstAt: this.clock.now,
    };
  }

  private turnBegins(one: Trajectory): void {
    one.routeRequest.contextTokens = one.contextTokens;
    const { madeTokens } = this.setup;
    one.madeTokens = Math.max(1, Math.min(madeTokens.cap, Math.round(lognormal(one.random, madeTokens))));
    one.beganAt = this.clock.now;
    this.calls.push({ one });
  }

  private placed(one: Trajectory, server: number): void {
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
    this.calls.push({ one, left: server, isOver: one.turnsLeft === 1 });
    this.turnSeconds += this.clock.now - one.beganAt;
    this.turns += 1;
    one.contextTokens += one.madeTokens;
    this.caches[server]!.put(one.routeRequest.sessionId, one.contextTokens);
    this.trim(server);
    one.turnsLeft -= 1;
    if (one.turnsLeft === 0) {
      this.endedSeconds.push(this.clock.now - one.firstAt);
      const { groupId } = one.routeRequest;
      const firstAt = Math.min(one.firstAt, this.groups.get(groupId)?.firstAt ?? Infinity);
      this.groups.set(groupId, { firstAt, endedAt: this.clock.now });
      this.trajectoryBegins();
      return;
    }
    const { toolSeconds, toolTokens, contextCapTokens, promptTokens } = this.setup;
    const isTimeout = one.random.uniform() < toolSeconds.timeoutShare;
    const seconds = isTimeout ? toolSeconds.timeoutSeconds : lognormal(one.random, toolSeconds);
    one.contextTokens += Math.round(lognormal(one.random, toolTokens));
    if (contextCapTokens !== undefined && one.contextTokens > contextCapTokens) {
      one.contextTokens = promptTokens;
      this.caches[server]!.take(one.routeRequest.sessionId);
    }
    this.clock.after(Math.min(seconds, toolSeconds.timeoutSeconds), () => this.turnBegins(one));
  }

  /** Drops cached contexts to make room for running sequences. */
  private trim(server: number): void {
    this.caches[server]!.trim(this.fleet.engine(server).kvTokensInUse);
  }
}

function meanAndP90(seconds: readonly number[]): { meanSeconds: number; p90Seconds: number } {
  return {
    meanSeconds: seconds.reduce((sum, one) => sum + one, 0) / seconds.length,
    p90Seconds: seconds.toSorted((a, b) => a - b)[Math.ceil(0.9 * seconds.length) - 1]!,
  };
}

function lognormal(random: RandomStream, { median, sigma }: { median: number; sigma: number }): number {
  return median * Math.exp(sigma * random.normal());
}
