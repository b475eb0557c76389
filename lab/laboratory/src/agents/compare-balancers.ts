import type { EngineParameters } from '@broomwagon/models';
import { AgentRun, type AgentResult } from './agent-run';
import { AGENT_WORKLOADS, type AgentGroup, type AgentWorkloadName, drawGroups } from './agent-workload';
import { BALANCERS } from './balancers';

/** Results of all balancers on the same sessions, seed by seed. */
export interface Comparison {
  workload: AgentWorkloadName | 'trace';
  /** Mean working set of all sessions / KV memory of the fleet; 0 for a trace. */
  oversubscription: number;
  seeds: readonly number[];
  results: Readonly<Record<string, readonly AgentResult[]>>;
}

export interface ComparisonSetup {
  workload: AgentWorkloadName;
  oversubscription: number;
  servers: number;
  engine: EngineParameters;
  seeds: readonly number[];
  /** Called before each run. */
  onRun?: (balancer: string, seed: number) => void;
}

/** Runs each balancer on the sessions of each seed. */
export function compareBalancers(setup: ComparisonSetup): Comparison {
  const { workload, oversubscription, servers, engine, seeds } = setup;
  const tokens = oversubscription * servers * engine.kvCapacityTokens;
  const results = runAll(setup, (seed) => drawGroups(AGENT_WORKLOADS[workload], tokens, seed));
  return { workload, oversubscription, seeds, results };
}

/** Runs each balancer once on the sessions of a trace. */
export function compareOnTrace(trace: AgentGroup, setup: Omit<RunSetup, 'seeds'>): Comparison {
  const seeds = [0];
  return { workload: 'trace', oversubscription: 0, seeds, results: runAll({ ...setup, seeds }, () => [trace]) };
}

type RunSetup = Pick<ComparisonSetup, 'servers' | 'engine' | 'seeds' | 'onRun'>;

function runAll({ servers, engine, seeds, onRun }: RunSetup, draw: (seed: number) => AgentGroup[]) {
  const results: Record<string, AgentResult[]> = Object.fromEntries(Object.keys(BALANCERS).map((name) => [name, []]));
  for (const seed of seeds) {
    const groups = draw(seed);
    for (const [name, create] of Object.entries(BALANCERS)) {
      onRun?.(name, seed);
      results[name]!.push(new AgentRun({ servers, engine, groups }, create).run());
    }
  }
  return results;
}
