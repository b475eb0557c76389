import { AgenticRun } from '../agentic/agentic-run';
import { PerWorkerRouter, RandomRouter, StaticHashRouter } from '../baselines/routers';
import { AGENT_WORKERS, AGENTIC, GUI_AGENT } from '../parameters';
import { ProductionRouter } from '../routing/production-router';
import type { Router } from '../routing/router';
import type { Experiment, Measures } from './experiment';

/** Trajectories of many turns with five routers. */
export const agentic: Experiment = {
  id: 'agentic',
  run({ seed }) {
    const { servers } = AGENTIC;
    const ways: Record<string, Router> = {
      'sticky-least-inflight': new ProductionRouter(servers),
      'sticky-least-sessions': new ProductionRouter(servers, { policy: 'least-sessions' }),
      'consistent-hash': new ProductionRouter(servers, { policy: 'consistent-hash' }),
      'least-inflight': new WithoutSessions(new ProductionRouter(servers)),
      random: new RandomRouter(servers, seed),
    };
    const measures: Measures = {};
    for (const [name, router] of Object.entries(ways)) {
      const { p90Seconds, groups, cacheHitShare } = new AgenticRun(AGENTIC, seed).run(router);
      measures[`agentic.${name}.p90`] = p90Seconds;
      measures[`agentic.${name}.groupMean`] = groups.meanSeconds;
      measures[`agentic.${name}.groupP90`] = groups.p90Seconds;
      measures[`agentic.${name}.hit`] = cacheHitShare;
    }
    // SkyRL publishes seconds of groups, and its sticky policy counts the active sessions of a server.
    const sticky = measures['agentic.sticky-least-sessions.groupP90']!;
    measures['agentic.hash.slowdown'] = measures['agentic.consistent-hash.groupP90']! / sticky;
    return measures;
  },
};

/** A screenshot agent with the global balancer, and with verl's earlier ways of routing. */
export const guiAgent: Experiment = {
  id: 'gui-agent',
  run({ seed }) {
    const { servers, trajectories } = GUI_AGENT;
    // Trajectories are named t0, t1, ... and given to the workers in even parts.
    const toWorker = (sessionId: string): number =>
      Math.floor((Number(sessionId.slice(1)) * AGENT_WORKERS) / trajectories);
    const ways: Record<string, Router> = {
      global: new ProductionRouter(servers),
      hash: new StaticHashRouter(servers),
      workers: new PerWorkerRouter(servers, AGENT_WORKERS, toWorker),
    };
    const measures: Measures = {};
    for (const [name, router] of Object.entries(ways)) {
      const { meanTurnSeconds, maxSeconds, cacheHitShare } = new AgenticRun(GUI_AGENT, seed).run(router);
      measures[`gui.${name}.turn`] = meanTurnSeconds;
      measures[`gui.${name}.max`] = maxSeconds;
      measures[`gui.${name}.hit`] = cacheHitShare;
    }
    for (const measure of ['turn', 'max']) {
      measures[`gui.${measure}.speedup`] = measures[`gui.hash.${measure}`]! / measures[`gui.global.${measure}`]!;
    }
    return measures;
  },
};

/** Routes each turn as if it were the first of its session. */
class WithoutSessions implements Router {
  constructor(private readonly inner: Router) {}

  get name(): string {
    return `${this.inner.name} without sessions`;
  }

  choose(routeRequest: Parameters<Router['choose']>[0]): number | undefined {
    return this.inner.choose({ ...routeRequest, sessionId: undefined });
  }

  released(server: number, routeRequest: Parameters<Router['released']>[1]): void {
    this.inner.released(server, { ...routeRequest, sessionId: undefined });
  }

  moved(): void {}
}
