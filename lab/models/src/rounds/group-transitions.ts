import { pinStep } from '@broomwagon/policies';
import { LengthHistory } from './length-history';
import { isWhole, LongtailQueue } from './longtail-queue';
import { countLiveOfDomain, hasPlace, openPlaces, releaseDomains, releaseReserved, takePlace } from './places';
import { isCut, isDiscarding, isSettling, takesResults } from './where-groups-go';
import { countWaste, HELD, keepTokens, madeByAttempt, RequestMoves, wasteTokens } from './request-moves';
import type { ModelAbort, ModelGroup, ModelRequest, ModelRound, ModelSegment } from './round-model.types';

/** New groups that are still to be submitted. */
const toCome = (round: ModelRound): number => Math.max(0, round.newGroups - round.submittedGroups);

/** Transitions of groups into, within and out of rounds; each function models one include of the scripts. */
export class GroupTransitions {
  readonly moves = new RequestMoves();
  readonly longtail = new LongtailQueue();
  readonly history = new LengthHistory();
  /** Groups that left their round because a sample was requeued, as long as workers have other samples of them. */
  readonly leaving = new Set<ModelGroup>();
  readonly groups = { submitted: 0, trained: 0, excluded: 0, failed: 0, dropped: 0, settling: 0 };
  private places = 0;

  /** Number of replacement groups needed: places that neither live groups nor groups to be submitted can fill. */
  shortfall(round: ModelRound): number {
    return Math.max(0, round.neededGroups - round.accepted.length - round.live.size - toCome(round));
  }

  /** Accepts a group that has all its samples, or holds it until the round has a place for it. */
  placeWhole(round: ModelRound, group: ModelGroup, nowMs: number, aborts: ModelAbort[]): void {
    this.dropSurplus(round, group, aborts);
    if (isCut(group)) {
      if (group.live === 0) this.settle(round, group);
    } else if (hasPlace(round, group)) {
      this.accept(round, group, nowMs);
      this.review(round, nowMs);
    } else {
      countLiveOfDomain(round, group, -1);
      round.held.add(group);
      group.held = true;
      this.review(round, nowMs);
    }
  }

  /** Ends the surplus samples of a whole group: pending ones at once, the others by aborts to their holders. */
  private dropSurplus(round: ModelRound, group: ModelGroup, aborts: ModelAbort[]): void {
    if (group.live === 0) return;
    for (const request of group.requests) {
      if (request.state === 'pending') this.drop(request, round, 'surplus');
      else if (HELD.has(request.state)) {
        if (request.state !== 'cutting') this.moves.move(request, 'cutting');
        aborts.push({ request, attempt: request.attempt });
      }
    }
  }

  private accept(round: ModelRound, group: ModelGroup, nowMs: number): void {
    if (group.held) round.held.delete(group);
    else countLiveOfDomain(round, group, -1);
    takePlace(round, group);
    group.held = false;
    group.pinned = false;
    group.state = 'accepted';
    round.live.delete(group);
    round.accepted.push(group);
    round.acceptedTokens += group.tokens;
    round.longestTokens = Math.max(round.longestTokens, group.longest);
    const kind = group.taken ? 'tail' : 'bulk';
    round[`${kind}Groups`] += 1;
    round[`${kind}Ms`] = nowMs - round.openedAtMs;
    group.finishedMs = nowMs - round.openedAtMs;
    this.history.count(group, 'finished', round.step);
  }

  /** Gives free places to held groups, and completes an open round that has all groups it can get. */
  review(round: ModelRound, nowMs: number): void {
    if (!takesResults(round)) return;
    if (round.state === 'open' && toCome(round) === 0) releaseDomains(round);
    for (const group of round.held) {
      if (round.places === undefined ? openPlaces(round) <= 0 : round.spare <= 0) break;
      this.accept(round, group, nowMs);
    }
    if (round.state !== 'open') return;
    if (round.rules.equalRewards === 'replace' && round.outcomes.size < round.accepted.length) return;
    if (round.accepted.length >= round.neededGroups) return this.complete(round, 'accepted', nowMs);
    if (round.rules.acceptsFewer && round.live.size === 0 && toCome(round) === 0) {
      this.complete(round, 'accepted-fewer', nowMs);
    }
  }

  complete(round: ModelRound, reason: NonNullable<ModelRound['completedReason']>, nowMs: number): void {
    round.state = 'completed';
    round.completedReason = reason;
    round.completedAtMs = nowMs;
    this.groups.settling += round.live.size;
    round.settled = round.live.size === 0;
  }

  /** Moves a group without live requests to the long-tail queue; its tokens are discarded if the policy says so. */
  settle(round: ModelRound, group: ModelGroup): void {
    if (group.wasCut) group.cuts += 1;
    this.history.count(group, isWhole(group) ? 'finished' : 'censored', round.step);
    if (isDiscarding(round)) this.discard(round, group);
    group.state = 'unfinished';
    group.held = false;
    group.pinned = false;
    group.wasCut = false;
    if (group.place === 0) group.place = ++this.places;
    group.pinStep = pinStep(group, round, round.rules);
    this.longtail.add(group);
    round.groupsRequeued += 1;
    if (this.leaving.has(group)) return this.forgetLeaving(group);
    round.live.delete(group);
    round.held.delete(group);
    this.groups.settling -= 1;
    round.settled = round.live.size === 0;
  }

  /** Takes a group out of its round because one of its samples was requeued. */
  enter(round: ModelRound, group: ModelGroup): void {
    this.leave(round, group);
    group.state = 'leaving';
    this.leaving.add(group);
    this.groups.settling += 1;
  }

  forgetLeaving(group: ModelGroup): void {
    this.leaving.delete(group);
    this.groups.settling -= 1;
  }

  private discard(round: ModelRound, group: ModelGroup): void {
    for (const request of group.requests) {
      if (request.state === 'finished') {
        wasteTokens(request, round, 'unaccepted');
        this.moves.move(request, 'unfinished');
      } else if (request.state === 'unfinished') {
        wasteTokens(request, round, 'cut');
      }
    }
    group.oldestVersion = undefined;
  }

  /** Ends a live request of a completed round or a leaving group. Only a started request counts as cut. */
  cut(round: ModelRound, request: ModelRequest, last?: ModelSegment): void {
    const { group } = request;
    if (isWhole(group) || request.stopped !== undefined) return this.endSurplus(round, request, last);
    const made = madeByAttempt(request, last)?.tokens ?? 0;
    if (HELD.has(request.state) && (request.started || made > 0)) {
      round.requestsCut += 1;
      group.wasCut = true;
    }
    if (isDiscarding(round)) wasteTokens(request, round, 'cut', last);
    else keepTokens(request, last);
    this.moves.move(request, 'unfinished');
    if (group.live === 0) this.settle(round, group);
  }

  /** Cuts a group that its completed round did not accept: ends pending requests and aborts held ones. */
  cutGroup(round: ModelRound, group: ModelGroup, aborts: ModelAbort[]): void {
    for (const request of group.requests) {
      if (request.state === 'pending') this.cut(round, request);
      else if (HELD.has(request.state)) {
        if (request.state !== 'cutting') this.moves.move(request, 'cutting');
        aborts.push({ request, attempt: request.attempt });
      }
    }
    if (group.live === 0 && isSettling(group)) this.settle(round, group);
  }

  /** Drops a surplus sample or a stopped sample that has ended, however it ended. */
  endSurplus(round: ModelRound, request: ModelRequest, last?: ModelSegment): void {
    this.drop(request, round, request.stopped ?? 'surplus', last);
    const { group } = request;
    if (group.live === 0 && isSettling(group)) this.settle(round, group);
  }

  drop(
    request: ModelRequest,
    round: ModelRound,
    reason: 'surplus' | 'failed' | 'aborted' | 'timeout',
    last?: ModelSegment,
  ): void {
    if (reason === 'aborted' || reason === 'timeout') {
      keepTokens(request, last);
      countWaste(round, reason, request.tokens);
      if (request.stopped !== undefined) request.group.tokens -= request.tokens;
    } else {
      wasteTokens(request, round, reason, last);
    }
    this.moves.move(request, 'dropped');
  }

  /** Fails a request for good, and its group too unless the other samples are enough. */
  fail(round: ModelRound, request: ModelRequest, nowMs: number, aborts: ModelAbort[], last?: ModelSegment): void {
    const { group } = request;
    wasteTokens(request, round, 'failed', last);
    this.moves.move(request, 'failed');
    if (this.goesOn(group)) {
      if (isWhole(group)) this.placeWhole(round, group, nowMs, aborts);
      return;
    }
    for (const sibling of group.requests) {
      if (sibling.state === 'failed' || sibling.state === 'dropped') continue;
      if (HELD.has(sibling.state)) aborts.push({ request: sibling, attempt: sibling.attempt });
      this.drop(sibling, round, 'failed');
    }
    this.leave(round, group);
    group.state = 'failed';
    round.failed.push(group);
    this.groups.failed += 1;
    this.review(round, nowMs);
  }

  /** Whether a group that lost a sample for good has enough others; if so, it needs no more samples than these. */
  private goesOn(group: ModelGroup): boolean {
    const isUsable = ({ state, stopped }: ModelRequest): boolean =>
      state !== 'failed' && state !== 'dropped' && stopped === undefined;
    const usable = group.requests.filter(isUsable).length;
    if (usable < group.minSamples) return false;
    // The queue keeps whole groups apart, and the group may become whole here.
    const isQueued = group.state === 'unfinished';
    if (isQueued) this.longtail.remove(group);
    group.samples = Math.min(group.samples, usable);
    if (isQueued) this.longtail.add(group);
    return true;
  }

  /** Ends one sample for good while its group continues. False if the group cannot continue; then nothing has ended. */
  stopSample(
    request: ModelRequest,
    reason: 'aborted' | 'timeout',
    nowMs: number,
    aborts: ModelAbort[],
    ended?: { last?: ModelSegment },
  ): boolean {
    const { group } = request;
    const { round } = group;
    const wasWhole = isWhole(group);
    request.stopped = reason;
    if (!this.goesOn(group)) return false;
    const completes = !wasWhole && isWhole(group);
    if (ended !== undefined || !HELD.has(request.state)) {
      this.endSurplus(round, request, ended?.last);
    } else if (!completes) {
      if (request.state !== 'cutting') this.moves.move(request, 'cutting');
      aborts.push({ request, attempt: request.attempt });
    }
    if (completes && group.state !== 'unfinished') this.placeWhole(round, group, nowMs, aborts);
    return true;
  }

  /** Drops a sample that its holder has ended at a timeout, or its whole group. */
  timeOut(round: ModelRound, request: ModelRequest, nowMs: number, aborts: ModelAbort[], last?: ModelSegment): void {
    if (round.abortScope === 'sample' && this.stopSample(request, 'timeout', nowMs, aborts, { last })) return;
    request.stopped = 'timeout';
    this.drop(request, round, 'timeout', last);
    aborts.push(...this.dropGroup(request.group, nowMs));
  }

  /** Drops a live or unfinished group: it is never trained. Returns the attempts that holders must stop. */
  dropGroup(group: ModelGroup, nowMs: number): ModelAbort[] {
    const { longtail, groups, moves } = this;
    const aborts: ModelAbort[] = [];
    const { round } = group;
    if (group.state === 'unfinished') longtail.remove(group);
    else if (group.state === 'live') this.leaveDropped(round, group);
    else if (group.state === 'leaving') this.forgetLeaving(group);
    else return aborts;
    group.state = 'dropped';
    groups.dropped += 1;
    for (const request of group.requests) {
      if (request.state === 'claimed' || request.state === 'running' || request.state === 'cutting') {
        if (request.state !== 'cutting') moves.move(request, 'cutting');
        aborts.push({ request, attempt: request.attempt });
      } else if (request.state !== 'dropped' && request.state !== 'failed') {
        this.drop(request, round, request.stopped ?? 'aborted');
      }
    }
    this.review(round, nowMs);
    return aborts;
  }

  /** Takes a dropped group out of its round; the caller ends its requests. */
  private leaveDropped(round: ModelRound, group: ModelGroup): void {
    this.leave(round, group);
    round.droppedGroups += 1;
    if (takesResults(round)) return;
    this.groups.settling -= 1;
    round.settled = round.live.size === 0;
  }

  /** Takes the group out of its round; does not change its requests. */
  leave(round: ModelRound, group: ModelGroup): void {
    if (group.pinned) releaseReserved(round);
    else if (!group.held) countLiveOfDomain(round, group, -1);
    group.pinned = false;
    group.held = false;
    round.held.delete(group);
    round.live.delete(group);
  }
}
