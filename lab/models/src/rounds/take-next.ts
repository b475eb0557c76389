import { NO_VERSION_SPAN } from '@broomwagon/policies';
import type { GroupTransitions } from './group-transitions';
import { isWhole } from './longtail-queue';
import { countLiveOfDomain, openPlaces, reservePlace } from './places';
import { wasteTokens } from './request-moves';
import type { ModelGroup, ModelRequest, ModelRound } from './round-model.types';

/** Takes one group from the long-tail queue. False if the queue is empty, or if its next group lacks a needed place. */
export function takeNext(state: GroupTransitions, round: ModelRound, nowMs: number): boolean {
  const { longtail, moves } = state;
  const group = longtail.next(round.step);
  if (group === undefined) return false;
  const isUrgent = isWhole(group) || group.pinStep <= round.step || round.rules.reservesTaken;
  if (isUrgent && openPlaces(round) <= 0) return false;
  longtail.remove(group);
  round.takenGroups += 1;
  round.live.add(group);
  Object.assign(group, { state: 'live', round, taken: true, pinned: isUrgent });
  if (isUrgent) reservePlace(round, group);
  else countLiveOfDomain(round, group, 1);
  discardOld(state, round, group);
  trim(state, round, group);
  for (const request of group.requests)
    if (request.state === 'unfinished') moves.move(request, 'pending', round.rules.dispatchOrder !== 'arrival');
  if (isWhole(group)) state.placeWhole(round, group, nowMs, []);
  return true;
}

/** Discards tokens that the round may not use: all, too old ones, or too large an off-policy share of the batch. */
function discardOld(state: GroupTransitions, round: ModelRound, group: ModelGroup): void {
  const { onCut, maxVersionSpan } = round.rules;
  const oldest = maxVersionSpan === NO_VERSION_SPAN ? -1 : round.weightVersion - maxVersionSpan;
  const waste = (request: ModelRequest, reason: 'cut' | 'unaccepted' | 'version-span' | 'off-policy'): void => {
    wasteTokens(request, round, reason);
    if (request.state === 'finished') state.moves.move(request, 'unfinished');
  };
  const usable = listUsableRequests(group);
  if (onCut === 'discard') {
    for (const request of usable) waste(request, request.state === 'finished' ? 'unaccepted' : 'cut');
  } else if (group.oldestVersion !== undefined && group.oldestVersion < oldest) {
    for (const request of usable) if (request.segments[0]!.weightVersion < oldest) waste(request, 'version-span');
  }
  group.oldestVersion = findOldestVersion(group);
  if (group.oldestVersion === undefined || group.oldestVersion >= round.weightVersion) return;
  if (group.tokens <= round.keepTokens) {
    round.keepTokens -= group.tokens;
    return;
  }
  for (const request of usable) waste(request, 'off-policy');
  group.oldestVersion = undefined;
}

/** Drops the last unfinished samples that a group does not need, in a round without surplus samples. */
function trim(state: GroupTransitions, round: ModelRound, group: ModelGroup): void {
  if (round.rules.sampleOverProvision > 1) return;
  let room = group.samples - group.finished;
  for (const request of group.requests) {
    if (request.state !== 'unfinished') continue;
    if (room > 0) room -= 1;
    else state.drop(request, round, 'surplus');
  }
}

/** Requests with tokens, except dropped ones, whose tokens count as waste already. */
function listUsableRequests({ requests }: ModelGroup): ModelRequest[] {
  return requests.filter(({ state, segments }) => state !== 'dropped' && segments.length > 0);
}

function findOldestVersion(group: ModelGroup): number | undefined {
  let oldest: number | undefined;
  for (const { segments } of listUsableRequests(group)) {
    const version = segments[0]?.weightVersion;
    if (version !== undefined && (oldest === undefined || version < oldest)) oldest = version;
  }
  return oldest;
}
