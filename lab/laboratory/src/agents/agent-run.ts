import type { EngineParameters } from '@broomwagon/models';
import { SimulatedFleet } from '../simulation/simulated-fleet';
import { VirtualClock } from '../simulation/virtual-clock';
import { type AgentGroup, type AgentSession, countLeastTokens } from './agent-workload';
import type { Balancer, CreateBalancer, FleetView, TurnRequest } from './balancers/balancer';

export interface AgentSetup {
  servers: number;
  engine: EngineParameters;
  groups: readonly AgentGroup[];
}

export interface AgentResult {
  turnsPerSecond: number;
  /** Time until all sessions have ended, and until 80 % of the groups have, seconds. */
  roundSeconds: number;
  groups80Seconds: number;
  /** Input tokens computed / input tokens that must be computed at least. */
  computedRatio: number;
  /** Context tokens found in the cache / all context tokens of turns. */
  hitRate: number;
  /** Tokens that the balancer expected in the cache / tokens found there; undefined if it expects nothing. */
  predictedHits?: number;
  /** Time from a turn's request to the start of its decode, seconds. */
  waitP50Seconds: number;
  waitP99Seconds: number;
  /** Busy time of the busiest server / mean busy time. */
  imbalance: number;
  preemptions: number;
}

interface LiveSession {
  session: AgentSession;
  prefixTokens: number;
  turn: number;
  contextTokens: number;
  request?: TurnRequest;
  requestedAt: number;
  parent?: LiveSession;
}

const END_OF_80 = 0.8;

/** Runs one round: sessions start on cold caches, by default at once, and each turn waits for the tool before it. */
export class AgentRun {
  private readonly clock = new VirtualClock();
  private readonly fleet: SimulatedFleet<LiveSession>;
  private readonly balancer: Balancer;
  private readonly live = new Map<string, LiveSession>();
  private readonly sessionsLeft = new Map<string, number>();
  private readonly groupEnds: number[] = [];
  private readonly waits: number[] = [];
  private readonly totals = { context: 0, expected: 0, left: 0 };
  private expects = false;

  constructor(
    private readonly setup: AgentSetup,
    create: CreateBalancer,
  ) {
    const { servers, engine, groups } = setup;
    this.fleet = new SimulatedFleet(this.clock, { servers, parameters: engine }, (server, one, decodeSeconds) =>
      this.turnEnded(server, one, decodeSeconds),
    );
    this.totals.left = groups.reduce((sum, { sessions }) => sum + sessions.length, 0);
    this.balancer = create(this.view());
  }

  run(): AgentResult {
    for (const group of this.setup.groups) {
      this.sessionsLeft.set(group.id, group.sessions.length);
      for (const session of group.sessions) {
        this.clock.at(session.startsAtSeconds ?? 0, () => this.begin(session, group.prefixTokens));
      }
    }
    this.clock.run(() => this.totals.left === 0);
    return this.result();
  }

  private view(): FleetView {
    const { servers, engine } = this.setup;
    return {
      servers,
      kvTokens: engine.kvCapacityTokens,
      nowMs: () => Math.floor(1_000 * this.clock.now),
      start: (turn, server, expected) => this.start(turn, server, expected),
      closeSession: (server, sessionId) => this.fleet.engine(server).closeSession(sessionId),
      every: (seconds, action) => this.repeat(seconds, action),
    };
  }

  private repeat(seconds: number, action: () => void): void {
    this.clock.after(seconds, () => {
      if (this.totals.left === 0) return;
      action();
      this.repeat(seconds, action);
    });
  }

  private begin(session: AgentSession, prefixTokens: number, parent?: LiveSession): void {
    const one = { session, prefixTokens, turn: 0, contextTokens: prefixTokens, requestedAt: 0, parent };
    this.live.set(session.id, one);
    this.requestTurn(one);
  }

  private requestTurn(one: LiveSession): void {
    const { session, prefixTokens, turn } = one;
    one.contextTokens += session.turns[turn]!.addedTokens;
    one.requestedAt = this.clock.now;
    one.request = {
      id: `${session.id}#${turn}`,
      sessionId: session.id,
      groupId: session.groupId,
      parentId: session.parentId,
      number: turn,
      contextTokens: one.contextTokens,
      prefixTokens,
    };
    this.balancer.request(one.request);
  }

  private start(
    { sessionId, groupId, contextTokens, prefixTokens }: TurnRequest,
    server: number,
    expected?: number,
  ): void {
    const one = this.live.get(sessionId)!;
    this.totals.context += contextTokens;
    if (expected !== undefined) {
      this.totals.expected += expected;
      this.expects = true;
    }
    this.fleet.add(server, {
      id: one,
      contextTokens,
      prefillTokens: contextTokens,
      remainingTokens: one.session.turns[one.turn]!.madeTokens,
      prefixes: [{ key: groupId, tokens: prefixTokens }],
      contextKey: sessionId,
    });
  }

  private turnEnded(server: number, one: LiveSession, decodeSeconds: number): void {
    const { session, turn } = one;
    const { madeTokens, toolSeconds, subagent } = session.turns[turn]!;
    this.waits.push(this.clock.now - decodeSeconds - one.requestedAt);
    one.contextTokens += madeTokens;
    one.turn += 1;
    this.balancer.ended(one.request!, server, madeTokens);
    if (one.turn === session.turns.length) this.sessionEnded(one);
    else if (subagent) this.begin(subagent, one.prefixTokens, one);
    else this.clock.after(toolSeconds, () => this.requestTurn(one));
  }

  private sessionEnded({ session, parent }: LiveSession): void {
    this.live.delete(session.id);
    this.balancer.sessionOver(session.id);
    if (parent) return this.requestTurn(parent);
    this.totals.left -= 1;
    const left = this.sessionsLeft.get(session.groupId)! - 1;
    this.sessionsLeft.set(session.groupId, left);
    if (left === 0) this.groupEnds.push(this.clock.now);
  }

  private result(): AgentResult {
    this.fleet.sync();
    const engines = this.fleet.engines.map(({ totals }) => totals);
    const sum = (name: 'prefillTokens' | 'hitTokens' | 'preemptions' | 'busySeconds') =>
      engines.reduce((total, one) => total + one[name], 0);
    const least = this.setup.groups.reduce((total, group) => total + countLeastTokens(group), 0);
    const waits = this.waits.toSorted((one, other) => one - other);
    const roundSeconds = this.groupEnds.at(-1)!;
    return {
      turnsPerSecond: waits.length / roundSeconds,
      roundSeconds,
      groups80Seconds: this.groupEnds[Math.ceil(END_OF_80 * this.groupEnds.length) - 1]!,
      computedRatio: sum('prefillTokens') / least,
      hitRate: sum('hitTokens') / this.totals.context,
      predictedHits: this.expects ? this.totals.expected / sum('hitTokens') : undefined,
      waitP50Seconds: waits[Math.ceil(0.5 * waits.length) - 1]!,
      waitP99Seconds: waits[Math.ceil(0.99 * waits.length) - 1]!,
      imbalance: (Math.max(...engines.map(({ busySeconds }) => busySeconds)) * engines.length) / sum('busySeconds'),
      preemptions: sum('preemptions'),
    };
  }
}
