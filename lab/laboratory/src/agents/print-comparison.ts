import type { ReportTable } from '../output/html-report';
import type { AgentResult } from './agent-run';
import { STICKY } from './balancers';
import type { Comparison } from './compare-balancers';
import { estimateMean, estimateRatio } from './statistics';
import type { CheckedTarget } from './targets';

/** One row for each balancer, with means over the seeds, and the paired ratio to the sticky balancer. */
export function tabulateComparison({ results }: Comparison): ReportTable {
  const head = [
    'rules',
    'turns/s',
    'round',
    'over sticky',
    '80 % of groups',
    'computed',
    'hit rate',
    'wait p50',
    'p99',
    'imbalance',
    'preempted',
  ];
  const rows = Object.entries(results).map(([name, runs]) => {
    const mean = (key: keyof AgentResult) => estimateMean(runs.map((run) => run[key]!)).mean;
    const rounds = (of: readonly AgentResult[]) => of.map(({ roundSeconds }) => roundSeconds);
    const ratio = estimateRatio(rounds(runs), rounds(results[STICKY]!));
    return [
      name,
      mean('turnsPerSecond').toFixed(2),
      `${mean('roundSeconds').toFixed(0)} s`,
      formatEstimate(ratio),
      `${mean('groups80Seconds').toFixed(0)} s`,
      mean('computedRatio').toFixed(2),
      mean('hitRate').toFixed(3),
      `${mean('waitP50Seconds').toFixed(1)} s`,
      `${mean('waitP99Seconds').toFixed(0)} s`,
      mean('imbalance').toFixed(2),
      mean('preemptions').toFixed(0),
    ];
  });
  return { head, rows };
}

export function tabulateTargets(targets: readonly CheckedTarget[]): ReportTable {
  return {
    head: ['sessions', 'working set', 'measure', 'at most', 'measured', ''],
    rows: targets.map(({ workload, oversubscription, text, atMost, measured, isHeld }) => [
      workload,
      `${oversubscription}x`,
      text,
      `${atMost}`,
      formatEstimate(measured),
      isHeld ? 'held' : 'no',
    ]),
  };
}

function formatEstimate({ mean, least, most }: { mean: number; least: number; most: number }): string {
  const interval = Number.isFinite(least + most) && most > least ? ` (${least.toFixed(2)} to ${most.toFixed(2)})` : '';
  return `${mean.toFixed(2)}${interval}`;
}
