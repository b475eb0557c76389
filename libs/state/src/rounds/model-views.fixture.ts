import type { PlanProgress } from '@broomwagon/policies';
import type { ModelGroup, ModelRound } from '@broomwagon/models';
import { isOver } from '../../../../lab/models/src/rounds/round-follower.fixture';

/** Progress for comparison, without lengths that a correction has reduced to zero. */
export function normalized({ history = [], control, ...progress }: PlanProgress) {
  const steps = history.map(({ lengths, recorded = '', ...record }) => ({
    ...pick(record),
    // Model and Redis have different clocks, so times are removed.
    recorded: recorded.replaceAll(/\d+:/g, 'ms:'),
    lengths: Object.fromEntries(
      Object.entries(lengths).flatMap(([domain, { finished, censored }]) => {
        const counts = { finished: withoutZeros(finished), censored: withoutZeros(censored) };
        return Object.keys(counts.finished).length + Object.keys(counts.censored).length === 0
          ? []
          : [[domain, counts]];
      }),
    ),
  }));
  return { ...progress, control: control ?? {}, history: steps };
}

type Times = Omit<NonNullable<PlanProgress['history']>[number], 'lengths'>;
function pick({ acceptedGroups, acceptedTokens, longestTokens, bulkGroups, tailGroups, newGroups }: Times) {
  return { acceptedGroups, acceptedTokens, longestTokens, bulkGroups, tailGroups, newGroups };
}

/** Sums of counters by name. */
export function sumTotals(counts: readonly Record<string, number>[]): Record<string, number> {
  const totals: Record<string, number> = {};
  for (const [name, count] of counts.flatMap((one) => Object.entries(one))) totals[name] = (totals[name] ?? 0) + count;
  return totals;
}

function withoutZeros(counts: Record<number, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** Ids of groups in the order of the queue: finished groups first, then by the place of their first cut. */
export function inOrder(groups: readonly ModelGroup[]): string[] {
  const isWhole = ({ finished, samples }: ModelGroup): number => (finished >= samples ? 0 : 1);
  return groups.toSorted((a, b) => isWhole(a) - isWhole(b) || a.place - b.place).map(({ groupId }) => groupId);
}

/** A group as `readJob` returns it. */
export function toGroupView(group: ModelGroup) {
  const { groupId, state, live, finished, tokens, longest, cuts, pinned, held, oldestVersion } = group;
  return {
    groupId,
    state: state === 'dropped' && live > 0 ? 'aborting' : state,
    live,
    finished,
    tokens,
    longest,
    cuts,
    pinned,
    held,
    oldestVersion: oldestVersion ?? null,
    requests: group.requests.map(({ state: now, attempt, failures, returns, tokens: made }) => [
      now,
      attempt,
      failures,
      returns,
      made,
    ]),
  };
}

function toPlaces({ places, spare }: ModelRound) {
  const taken = [...(places ?? [])].filter(([, count]) => count > 0);
  return { places: Object.fromEntries(taken), spare: places === undefined ? 0 : spare };
}

/** A round as `readJob` returns it. */
export function viewOfRound(round: ModelRound) {
  return {
    state: round.state,
    accepted: round.accepted.filter(({ state }) => state === 'accepted').map(({ groupId }) => groupId),
    held: [...round.held].map(({ groupId }) => groupId),
    numbers: {
      neededGroups: round.neededGroups,
      newGroups: round.newGroups,
      replacedGroups: round.replacedGroups,
      excludedGroups: [...round.outcomes.values()].filter((outcome) => outcome !== 'kept').length,
      takenGroups: round.takenGroups,
      submittedGroups: round.submittedGroups,
      liveGroups: round.live.size,
      acceptedGroups: round.accepted.length,
      failedGroups: round.failed.length,
      droppedGroups: round.droppedGroups,
      reservedGroups: round.reserved,
      requestsDone: round.requestsDone,
      requestsCut: round.requestsCut,
      groupsRequeued: round.groupsRequeued,
      inFlight: round.rules.concurrency > 0 ? round.inFlight : 0,
      settled: round.settled && round.state !== 'open' ? 1 : 0,
    },
    // Places are deleted when the round is folded.
    ...(isOver(round) ? {} : toPlaces(round)),
  };
}
