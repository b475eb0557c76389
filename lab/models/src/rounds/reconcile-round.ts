import type { GroupTransitions } from './group-transitions';
import { takesResults } from './where-groups-go';
import { countWaste, HELD, keepTokens } from './request-moves';
import type { ModelAbort, ModelGroup, ModelRound } from './round-model.types';

// Effects of `job.reconcile` on a round and on a group, as in the script rounds/reconcile and its includes.

/** Cancels a round that is not closed. Returns its accepted groups, which the caller must give back. */
export function cancelRound({ groups }: GroupTransitions, round: ModelRound): ModelGroup[] {
  // The live groups of a completed round count as settling already.
  groups.settling += round.accepted.length + (round.state === 'completed' ? 0 : round.live.size);
  round.state = 'cancelled';
  round.settled = false;
  round.outcomes.clear();
  delete round.wasted['equal-rewards'];
  return round.accepted.splice(0);
}

/** Moves the groups that are still accepted to the long-tail queue, each as soon as none of its requests is live. */
export function giveBack(state: GroupTransitions, round: ModelRound, accepted: readonly ModelGroup[]): void {
  for (const group of accepted) {
    if (group.state !== 'accepted') continue;
    group.state = 'live';
    round.live.add(group);
    if (group.live === 0) state.settle(round, group);
  }
  round.settled = round.live.size === 0;
}

/** Takes a group from any place and counts it as trained. False if it is counted already, or will be with its round. */
export function trainGroup(state: GroupTransitions, group: ModelGroup, aborts: ModelAbort[]): boolean {
  if (group.state === 'trained' || group.state === 'excluded') return false;
  if (group.state === 'accepted' && group.round.state === 'closed') return false;
  leaveWhereItIs(state, group);
  trainRequests(state, group, aborts);
  group.state = 'trained';
  state.groups.trained += 1;
  return true;
}

function leaveWhereItIs(state: GroupTransitions, group: ModelGroup): void {
  const { groups, longtail } = state;
  const { round } = group;
  if (group.state === 'live') {
    state.leave(round, group);
    if (takesResults(round)) throw new Error('A group of an open round cannot be trained already');
    groups.settling -= 1;
    round.settled = round.live.size === 0;
  } else if (group.state === 'leaving') state.forgetLeaving(group);
  else if (group.state === 'accepted') groups.settling -= 1;
  else if (group.state === 'unfinished') longtail.remove(group);
  else if (group.state === 'failed') groups.failed -= 1;
  else groups.dropped -= 1;
}

/** Counts as many requests as the group needs as trained, finished ones first; the others are surplus. */
function trainRequests({ moves }: GroupTransitions, group: ModelGroup, aborts: ModelAbort[]): void {
  const finished = group.requests.filter(({ state }) => state === 'finished').toReversed();
  const others = group.requests.filter(({ state }) => state !== 'finished');
  let wanted = group.samples;
  for (const request of [...finished, ...others]) {
    if (HELD.has(request.state)) aborts.push({ request, attempt: request.attempt });
    keepTokens(request, undefined);
    if (wanted > 0) {
      moves.move(request, 'trained');
      wanted -= 1;
    } else if (request.state !== 'dropped' && request.state !== 'failed') {
      countWaste(group.round, 'surplus', request.tokens);
      moves.move(request, 'dropped');
    }
  }
}
