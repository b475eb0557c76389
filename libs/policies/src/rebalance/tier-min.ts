import type {
  PlannedMove,
  RebalancePlan,
  RebalanceRequest,
  RebalanceServer,
  RebalanceSnapshot,
} from './rebalance.types';
import { checkTiers, DEFAULT_TIERS, findTier } from './tiers';

/** Input of the published algorithm for one server. */
export interface RankState {
  running: number;
  waiting: number;
  /** KV cache in use, 0 to 1. */
  blockUsage: number;
}
/** Number of requests that go from one rank to another. A rank is a position in the list of states. */
export interface BalancingTask {
  fromRank: number;
  toRank: number;
  count: number;
  needsKvCache: boolean;
}
export interface TierMinOptions {
  /** Descending. Default {@link DEFAULT_TIERS}. */
  tiers?: readonly number[];
  /** Maximum requests that an engine runs at once, `max_num_running_reqs`. Default, and for 0: the largest tier. */
  maxRunning?: number;
}

/** A rank with a higher KV use takes no requests, and gives no running requests. */
const HIGH_USAGE = 0.8;

/**
 * The published rule (rollout rebalance for vLLM on Ascend), step by step, for comparison: the lowest maximum tier
 * first, then few moves, then an even load. Weaknesses of the rule are kept, and tests show them. Use {@link
 * planTierCost} instead.
 */
export function balancingTasks(ranks: readonly RankState[], options: TierMinOptions = {}): BalancingTask[] {
  const { tiers = DEFAULT_TIERS } = options;
  checkTiers(tiers);
  if (ranks.length === 0) return [];
  const largest = tiers[0] as number;
  const counts = ranks.map((rank) => rank.running + rank.waiting);
  const tierBefore = Math.max(...counts.map((count) => findTier(count, tiers)));
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const bound = Math.min(tierBefore, largest, options.maxRunning || largest);
  const target = [...tiers].reverse().find((tier) => mean <= tier && tier < bound) ?? bound;

  const { receivers, waiting, donors } = sortRanks(ranks, target);
  const tasks = placeWaiting(waiting, receivers);
  if (waiting.some((donor) => donor.count > 0) || target >= tierBefore) return tasks;
  return [...tasks, ...placeRunning(donors, receivers)];
}

interface Donor {
  rank: number;
  count: number;
}
interface Receiver {
  rank: number;
  capacity: number;
  running: number;
}

function sortRanks(ranks: readonly RankState[], target: number) {
  const [receivers, waiting, donors]: [Receiver[], Donor[], Donor[]] = [[], [], []];
  ranks.forEach(({ running, waiting: queued, blockUsage: usage }, rank) => {
    if (queued > 0) waiting.push({ rank, count: queued });
    else if (usage > HIGH_USAGE) return;
    else if (running < target) {
      const capacity = usage > 0 ? Math.trunc((running * (1 - usage)) / usage) : Infinity;
      receivers.push({ rank, running, capacity: Math.min(target - running, capacity) });
    } else if (running > target) donors.push({ rank, count: running - target });
  });
  return { receivers, waiting, donors };
}

/**
 * Gives waiting requests one by one to the least loaded receiver. The donors of these requests follow in the order of
 * ranks.
 */
function placeWaiting(donors: readonly Donor[], receivers: readonly Receiver[]): BalancingTask[] {
  const assigned = receivers.map(() => 0);
  let left = donors.reduce((sum, donor) => sum + donor.count, 0);
  for (; left > 0; left -= 1) {
    let best = -1;
    let lowest = Infinity;
    receivers.forEach(({ running, capacity }, index) => {
      const taken = assigned[index] as number;
      if (taken < capacity && running + taken < lowest) [best, lowest] = [index, running + taken];
    });
    if (best < 0) break;
    assigned[best] = (assigned[best] as number) + 1;
  }
  const tasks: BalancingTask[] = [];
  const queue = donors[Symbol.iterator]();
  let donor = queue.next().value as Donor | undefined;
  receivers.forEach((receiver, index) => {
    for (let wanted = assigned[index] as number; wanted > 0 && donor !== undefined;) {
      const count = Math.min(wanted, donor.count);
      tasks.push({ fromRank: donor.rank, toRank: receiver.rank, count, needsKvCache: false });
      wanted -= count;
      donor.count -= count;
      receiver.capacity -= count;
      if (donor.count === 0) donor = queue.next().value as Donor | undefined;
    }
  });
  return tasks;
}

/** Moves running requests: receivers with the most room come first, and donors take turns. */
function placeRunning(allDonors: readonly Donor[], allReceivers: readonly Receiver[]): BalancingTask[] {
  const tasks: BalancingTask[] = [];
  let [donors, receivers] = [[...allDonors], [...allReceivers]];
  while (donors.length > 0 && receivers.length > 0) {
    let turn = 0;
    for (const receiver of [...receivers].sort((one, other) => other.capacity - one.capacity)) {
      const donor = donors[turn] as Donor;
      const count = Math.min(donor.count, receiver.capacity);
      if (count <= 0) continue;
      tasks.push({ fromRank: donor.rank, toRank: receiver.rank, count, needsKvCache: true });
      donor.count -= count;
      receiver.capacity -= count;
      turn = (turn + 1) % donors.length;
    }
    donors = donors.filter((donor) => donor.count > 0);
    receivers = receivers.filter((receiver) => receiver.capacity > 0);
  }
  return tasks;
}

/**
 * Applies the published rule to a snapshot. The rule ignores drains, costs and earlier moves, and moves the last
 * requests of `[...running, ...waiting]` of a server. Gain and cost are 0, because the rule does not compute them.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function planTierMin({ servers }: RebalanceSnapshot, options: TierMinOptions = {}): RebalancePlan {
  const { tiers = DEFAULT_TIERS } = options;
  const queues = servers.map(victimQueue);
  const ranks = servers.map(({ requests, otherCalls = 0, kvUse = 0 }): RankState => {
    const waiting = requests.filter(({ phase }) => phase !== 'running').length;
    return { running: requests.length - waiting + otherCalls, waiting, blockUsage: kvUse };
  });
  const counts = ranks.map((rank) => rank.running + rank.waiting);
  const tierBefore = Math.max(0, ...counts.map((count) => findTier(count, tiers)));
  const moves: PlannedMove[] = [];
  for (const { fromRank, toRank, count, needsKvCache } of balancingTasks(ranks, options)) {
    const victims = (queues[fromRank] as RebalanceRequest[]).splice(-count, count);
    const [from, to] = [servers[fromRank] as RebalanceServer, servers[toRank] as RebalanceServer];
    const isKept = from.kvStore !== undefined && from.kvStore === to.kvStore;
    counts[fromRank] = (counts[fromRank] as number) - victims.length;
    counts[toRank] = (counts[toRank] as number) + victims.length;
    for (const { requestId, attempt } of victims) {
      moves.push({
        requestId,
        attempt,
        fromServerId: from.serverId,
        fromEpoch: from.epoch,
        toServerId: to.serverId,
        toEpoch: to.epoch,
        purpose: needsKvCache ? 'tier' : 'wait',
        means: !needsKvCache ? 'bind' : isKept ? 'transfer' : 'recompute',
        costSeconds: 0,
        gainSeconds: 0,
      });
    }
  }
  return {
    policy: 'tier-min',
    moves,
    tierBefore,
    tierAfter: Math.max(0, ...counts.map((count) => findTier(count, tiers))),
    gainSeconds: 0,
    costSeconds: 0,
    stallSeconds: 0,
    ...(moves.length === 0 && { reason: 'balanced' }),
  };
}

function victimQueue({ requests }: RebalanceServer): RebalanceRequest[] {
  const runs = ({ phase }: RebalanceRequest): boolean => phase === 'running';
  return [...requests.filter(runs), ...requests.filter((request) => !runs(request))];
}
