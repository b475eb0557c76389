import { ENGINE_PRESETS } from '@broomwagon/models';
import { describe, expect, it } from 'vitest';
import { AgentRun } from './agent-run';
import { AGENT_WORKLOADS, countLeastTokens, drawGroups, measureWorkingSet } from './agent-workload';
import { BALANCERS, PROGRAMS, STICKY } from './balancers';
import type { CreateBalancer, FleetView } from './balancers/balancer';
import { createCapped } from './balancers/simple-balancers';

const engine = ENGINE_PRESETS['30b-a3b-agents'];
const servers = 2;
const drawRound = (load: number, seed: number) =>
  drawGroups(AGENT_WORKLOADS.agents, load * servers * engine.kvCapacityTokens, seed);
const run = (create: CreateBalancer, load: number, seed = 1) =>
  new AgentRun({ servers, engine, groups: drawRound(load, seed) }, create).run();

/** A balancer that is watched: counts starts and live sessions of each server. */
function watch(create: CreateBalancer) {
  const seen = { starts: 0, mostSessions: 0 };
  const here = Array.from({ length: servers }, () => new Set<string>());
  const watched: CreateBalancer = (fleet: FleetView) => {
    const inner = create({
      ...fleet,
      start(turn, server, expected) {
        seen.starts += 1;
        if (turn.parentId === undefined) here[server]!.add(turn.sessionId);
        seen.mostSessions = Math.max(seen.mostSessions, ...here.map(({ size }) => size));
        fleet.start(turn, server, expected);
      },
    });
    return {
      request: (turn) => inner.request(turn),
      ended: (turn, server, madeTokens) => inner.ended(turn, server, madeTokens),
      sessionOver(sessionId) {
        for (const sessions of here) sessions.delete(sessionId);
        inner.sessionOver(sessionId);
      },
    };
  };
  return { seen, watched };
}

describe('rounds of agent sessions', () => {
  it.each(Object.keys(BALANCERS))('runs every turn once under the rules of %s', (name) => {
    const turns = drawRound(1.5, 1)
      .flatMap(({ sessions }) => sessions)
      .flatMap((session) => session.turns)
      .reduce((sum, { subagent }) => sum + 1 + (subagent?.turns.length ?? 0), 0);
    const { seen, watched } = watch(BALANCERS[name]!);
    const result = run(watched, 1.5);
    expect(seen.starts).toBe(turns);
    expect(result.turnsPerSecond * result.roundSeconds).toBeCloseTo(turns, 6);
    // A prefix is computed at least once, and its last block is never shared.
    expect(result.computedRatio).toBeGreaterThan(1);
  });

  it('end the same under the same seed, and otherwise under another', () => {
    expect(run(BALANCERS[PROGRAMS]!, 1)).toEqual(run(BALANCERS[PROGRAMS]!, 1));
    expect(run(BALANCERS[PROGRAMS]!, 1, 2)).not.toEqual(run(BALANCERS[PROGRAMS]!, 1));
  });

  it('thrash when all contexts do not fit, but not when sessions are admitted by KV memory', () => {
    const [sticky, programs] = [run(BALANCERS[STICKY]!, 3), run(BALANCERS[PROGRAMS]!, 3)];
    expect(sticky.hitRate).toBeLessThan(0.5);
    expect(programs.hitRate).toBeGreaterThan(0.8);
    expect(programs.computedRatio).toBeLessThan(sticky.computedRatio / 3);
    expect(programs.predictedHits).toBeGreaterThan(0.97);
    expect(programs.predictedHits).toBeLessThan(1.03);
  });

  it('have at most as many live sessions on a server as a cap allows', () => {
    const { seen, watched } = watch(createCapped(5));
    run(watched, 2);
    expect(seen.mostSessions).toBe(5);
  });
});

describe('workloads of agents', () => {
  it('have the published quantiles: turns of NeMo Gym, gaps of coding agents, subagents of AgentX', () => {
    const nemo = drawGroups(AGENT_WORKLOADS.nemo, 4e7, 1).flatMap(({ sessions }) => sessions);
    const turns = nemo.map((session) => session.turns.length).toSorted((one, other) => one - other);
    const quantile = (values: number[], share: number) => values[Math.floor(share * values.length)]!;
    expect(Math.abs(quantile(turns, 0.5) - 29)).toBeLessThanOrEqual(3);
    expect(Math.abs(quantile(turns, 0.9) - 56)).toBeLessThanOrEqual(6);
    const agents = drawGroups(AGENT_WORKLOADS.agents, 4e7, 1).flatMap(({ sessions }) => sessions);
    const gaps = agents.flatMap((session) => session.turns.map(({ toolSeconds }) => toolSeconds));
    const within = (seconds: number) => gaps.filter((gap) => gap <= seconds).length / gaps.length;
    expect(within(1)).toBeCloseTo(0.865, 1.7);
    expect(within(10)).toBeCloseTo(0.951, 1.7);
    const parents = agents.filter((session) => session.turns.some(({ subagent }) => subagent));
    expect(parents.length / agents.length).toBeCloseTo(0.44, 1);
  });

  it('count the working set and the least tokens of a group with its prefix once', () => {
    const turn = { addedTokens: 100, madeTokens: 50, toolSeconds: 1 };
    const sub = { id: 'sub', groupId: 'g', parentId: 'a', turns: [turn] };
    const sessions = [
      { id: 'a', groupId: 'g', turns: [{ ...turn, subagent: sub }, turn] },
      { id: 'b', groupId: 'g', turns: [turn] },
    ];
    const group = { id: 'g', prefixTokens: 1_000, sessions };
    expect(measureWorkingSet(group)).toBe(1_000 + (150 + 300) / 2 + 150);
    expect(countLeastTokens(group)).toBe(1_000 + 200 + 100 + 100);
  });
});
