import { RandomStream, responseLength, ENGINE_PRESETS, LENGTH_PRESETS } from '@broomwagon/models';
import { planTierCost, type RebalancePlan, type RebalanceRequest, type RebalanceServer } from '@broomwagon/policies';
import { median, percentile, significant } from '../arithmetic';
import { plainTable } from '../table';

const SERVERS = 1_000;
const REQUESTS = 100_000;
const TIERS = [256, 128, 64, 32, 16, 8, 4];

/** Options with which a plan takes every reachable tier, however small the gain: the most work. */
const OPTIONS = { ...ENGINE_PRESETS['7b-8k'], tiers: TIERS, minGainRatio: 0, stepPerSequenceSeconds: 1 };

/** Fleets that need different work: requests of a server by its position in the fleet, KV cache, share that waits. */
const FLEETS = {
  /** Servers with 20 to 180 requests each, and room everywhere. */
  uneven: { load: (share: number) => 20 + 160 * share, kvCapacityTokens: 700_000, waiting: 0 },
  /** Half of the servers have run dry. */
  'half idle': { load: (share: number) => (share < 0.5 ? 0 : 200), kvCapacityTokens: 700_000, waiting: 0 },
  /** Two halves with different load, and hardly any free KV cache: most placements are refused. */
  'no cache': { load: (share: number) => (share < 0.5 ? 60 : 140), kvCapacityTokens: 160_000, waiting: 0 },
  /** A third of the requests wait on servers that are full. */
  queues: { load: (share: number) => (share < 0.5 ? 10 : 190), kvCapacityTokens: 700_000, waiting: 0.3 },
} as const;

/** Content of the file of `--json`. Times are milliseconds of one plan. */
export interface PlanReport {
  measuredAt: string;
  rounds: number;
  rows: { fleet: string; moves: number; medianMs: number; p99Ms: number }[];
  /** Median of the slowest fleet. */
  planMs: number;
}

/** `bench plan`: one plan for 1,000 servers and 100,000 requests. */
export async function benchPlan(_stage: unknown, isQuick: boolean): Promise<{ report: PlanReport; text: string }> {
  const rounds = isQuick ? 5 : 25;
  const rows = Object.entries(FLEETS).map(([fleet, parts]) => {
    const servers = aFleet(parts);
    const times: number[] = [];
    let plan: RebalancePlan | undefined;
    for (let round = 0; round <= rounds; round += 1) {
      const startedAt = performance.now();
      plan = planTierCost({ servers }, OPTIONS);
      times.push(performance.now() - startedAt);
    }
    // The first plan does not count: V8 compiles the code meanwhile.
    const measured = Float64Array.from(times.slice(1)).sort();
    const moves = plan?.moves.length ?? 0;
    return { fleet, moves, medianMs: median([...measured]), p99Ms: percentile(measured, 0.99) };
  });
  const planMs = Math.max(...rows.map(({ medianMs }) => medianMs));
  const text = plainTable(
    [`${SERVERS} servers, ${REQUESTS} requests`, 'moves', 'median ms', 'p99 ms'],
    rows.map(({ fleet, moves, medianMs, p99Ms }) => [
      fleet,
      String(moves),
      String(significant(medianMs)),
      String(significant(p99Ms)),
    ]),
  );
  return { report: { measuredAt: new Date().toISOString(), rounds, rows, planMs }, text };
}

function aFleet({ load, kvCapacityTokens, waiting }: (typeof FLEETS)[keyof typeof FLEETS]): RebalanceServer[] {
  const random = new RandomStream('plan-bench');
  let left = REQUESTS;
  return Array.from({ length: SERVERS }, (_, index) => {
    const share = index / SERVERS;
    const wanted = Math.round(load(share));
    const count = Math.min(left, wanted);
    left -= count;
    const requests = Array.from({ length: count }, (_unused, position) =>
      aRequest(`${index}/${position}`, random, waiting),
    );
    return { serverId: `server-${index}`, epoch: 'e1', accepts: true, capacity: 1_024, kvCapacityTokens, requests };
  });
}

function aRequest(requestId: string, random: RandomStream, waiting: number): RebalanceRequest {
  const length = responseLength(LENGTH_PRESETS['math-short-8k'], { seed: 1, promptKey: requestId, sampleIndex: 0 });
  const madeTokens = Math.floor(length * random.uniform());
  const isWaiting = random.uniform() < waiting;
  return {
    requestId,
    attempt: '1-a',
    phase: isWaiting ? 'waiting' : 'running',
    promptTokens: 300,
    madeTokens: isWaiting ? 0 : madeTokens,
    remainingTokens: length - madeTokens,
    moves: 0,
  };
}
