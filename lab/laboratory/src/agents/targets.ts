import type { AgentResult } from './agent-run';
import type { AgentWorkloadName } from './agent-workload';
import { PROGRAMS, STICKY, THUNDER_AGENTS } from './balancers';
import type { Comparison } from './compare-balancers';
import { estimateMean, estimateRatio, type Estimate } from './statistics';

type Time = 'roundSeconds' | 'groups80Seconds';
/** Peers of a target: the best one counts, by the mean of the measure. */
type Peers = 'sticky' | 'ThunderAgent' | 'all' | 'cache_aware' | 'consistent hash';

interface Target {
  workload: AgentWorkloadName;
  /** The target holds for these oversubscriptions: from the least, below the most. */
  from: number;
  below: number;
  measure: Time | 'computedRatio' | 'predictedHits';
  /** Values to which the measure is compared; absent: the target holds for the measure itself. */
  peers?: Peers;
  /** Highest value; for `predictedHits` the largest difference from 1. */
  atMost: number;
}

const TIMES: Time[] = ['roundSeconds', 'groups80Seconds'];
const agents = { workload: 'agents' as const };
const nemo = { workload: 'nemo' as const, measure: 'roundSeconds' as const };

/** Targets that were set before this simulation was written, by another one. */
const TARGETS: readonly Target[] = [
  ...TIMES.map((measure): Target => ({ ...agents, from: 0, below: 1.5, measure, peers: 'all', atMost: 1.02 })),
  { ...agents, from: 0, below: 1.5, measure: 'computedRatio', atMost: 1.15 },
  { ...agents, from: 1.5, below: 3, measure: 'roundSeconds', peers: 'sticky', atMost: 0.5 },
  { ...agents, from: 1.5, below: 3, measure: 'groups80Seconds', peers: 'sticky', atMost: 0.4 },
  { ...agents, from: 1.5, below: 3, measure: 'roundSeconds', peers: 'ThunderAgent', atMost: 0.97 },
  { ...agents, from: 1.5, below: 3, measure: 'groups80Seconds', peers: 'ThunderAgent', atMost: 0.88 },
  { ...agents, from: 1.5, below: 3, measure: 'computedRatio', atMost: 1.2 },
  { ...agents, from: 3, below: Infinity, measure: 'roundSeconds', peers: 'sticky', atMost: 0.38 },
  { ...agents, from: 3, below: Infinity, measure: 'groups80Seconds', peers: 'sticky', atMost: 0.36 },
  { ...agents, from: 3, below: Infinity, measure: 'roundSeconds', peers: 'ThunderAgent', atMost: 0.88 },
  { ...agents, from: 3, below: Infinity, measure: 'groups80Seconds', peers: 'ThunderAgent', atMost: 0.84 },
  { ...agents, from: 3, below: Infinity, measure: 'computedRatio', atMost: 1.15 },
  { ...agents, from: 0, below: Infinity, measure: 'predictedHits', atMost: 0.03 },
  { ...nemo, from: 0, below: 1.5, peers: 'cache_aware', atMost: 0.97 },
  { ...nemo, from: 0, below: 1.5, peers: 'consistent hash', atMost: 0.93 },
  { ...nemo, from: 1.5, below: Infinity, peers: 'cache_aware', atMost: 0.5 },
  { ...nemo, from: 1.5, below: Infinity, peers: 'consistent hash', atMost: 0.5 },
];

/** A target beside what was measured. */
export interface CheckedTarget {
  workload: Comparison['workload'];
  oversubscription: number;
  text: string;
  atMost: number;
  measured: Estimate;
  isHeld: boolean;
}

const TEXTS: Record<Target['measure'], string> = {
  roundSeconds: 'round',
  groups80Seconds: '80 % of groups',
  computedRatio: 'tokens computed over each private token once',
  predictedHits: 'predicted over measured hits, difference from 1',
};

/** Compares each target with the runs. A target is held if the mean is. */
export function checkTargets(comparison: Comparison): CheckedTarget[] {
  const { workload, oversubscription } = comparison;
  return TARGETS.filter(
    (target) => target.workload === workload && oversubscription >= target.from && oversubscription < target.below,
  ).map((target) => {
    const { measured, text } = measure(comparison, target);
    const isHeld = measured.mean <= target.atMost;
    return { workload, oversubscription, text, atMost: target.atMost, measured, isHeld };
  });
}

function measure({ results }: Comparison, target: Target): { measured: Estimate; text: string } {
  const read = (name: string, key: keyof AgentResult) => results[name]!.map((result) => result[key]!);
  const text = TEXTS[target.measure];
  if (target.measure === 'predictedHits') {
    const differences = read(PROGRAMS, 'predictedHits').map((ratio) => Math.abs(ratio - 1));
    return { measured: estimateMean(differences), text };
  }
  if (!target.peers) return { measured: estimateMean(read(PROGRAMS, target.measure)), text };
  const mean = (name: string) => estimateMean(read(name, target.measure)).mean;
  const best = listPeers(target.peers, Object.keys(results)).toSorted((one, other) => mean(one) - mean(other))[0]!;
  const measured = estimateRatio(read(PROGRAMS, target.measure), read(best, target.measure));
  return { measured, text: `${text} over ${best}` };
}

function listPeers(peers: Peers, names: readonly string[]): readonly string[] {
  if (peers === 'sticky') return [STICKY];
  if (peers === 'ThunderAgent') return THUNDER_AGENTS;
  if (peers === 'all') return names.filter((name) => !name.startsWith(PROGRAMS));
  return names.filter((name) => name.startsWith(peers));
}
