import type { TailChoice } from '@broomwagon/contracts';
import { hasPins, launchedSamples, NEVER, NO_VERSION_SPAN } from '../tail';
import type { TailControl } from '../tail';
import { GroupTransitions, takesResults } from './group-transitions';
import { isWhole } from './longtail-queue';
import { countLiveOfDomain, openPlaces } from './places';
import type { PlanSnapshot } from './plan-round';
import { roundTerms } from './round-terms';
import { HELD, keepTokens, wasteTokens } from './request-moves';
import type {
  Holder,
  ModelAbort,
  ModelGroup,
  ModelOpening,
  ModelRequest,
  ModelRound,
  ModelSegment,
  ModelSubmission,
} from './round-model.types';

/**
 * The rounds of one job: reference model of the transitions that the Lua scripts of libs/state make, without I/O, paging
 * or a clock of its own. A differential test drives both with the same events; the laboratory drives it alone, with
 * millions of requests: no event looks at more than one group, save the cut, which looks at what a round leaves over.
 *
 * A step, as the laboratory drives it (times are any milliseconds that do not go back):
 *
 *     const plan = planRound(model.snapshot(), { groupsPerStep, remainingGroups, policy });
 *     model.open({ ...plan, policy, weightVersion }, now);         // takes from the long-tail queue
 *     model.submit(groups, now);                                   // exactly plan.newGroups of them
 *     const requests = model.claim(count, holder, now);            // whenever a holder has room; [] at the gate
 *     model.checkpoint(request, request.attempt, segment);         // optional: begun, tokens so far
 *     const { aborts } = model.complete(request, request.attempt, segment, now);
 *     // the round's state is `completed` when it has its groups: then, once,
 *     for (const { request, attempt } of model.cut()) ...       // each holder stops, and confirms with
 *     model.fail(request, attempt, { segment }, now);              // the tokens made until then
 *     model.close(); model.fold();                                 // trained
 *
 * `aborts` of any answer are attempts whose holders must stop and confirm with `fail` (surplus siblings, a failed
 * group; a group that failed needs no confirmation). `request.segments` are the tokens that a claim brings along: an engine resumes behind `request.tokens`. What a
 * message says about an attempt that has ended is refused as 'FENCED' and changes nothing.
 */
export class RoundModel {
  private readonly state = new GroupTransitions();
  private control: TailControl = {};
  private stepsTrained = 0;
  /** The round that was opened last. */
  round?: ModelRound;
  /** Completed and closed rounds of which something is live or not folded, oldest first. */
  private readonly left: ModelRound[] = [];

  get books(): GroupTransitions['moves']['books'] {
    return this.state.moves.books;
  }

  /** Groups: submitted, trained, failed, dropped, and on their way to the long-tail queue. */
  get groups(): GroupTransitions['groups'] {
    return this.state.groups;
  }

  get longtail(): GroupTransitions['longtail'] {
    return this.state.longtail;
  }

  /** Requests that a holder has. */
  held(holder: Holder): ReadonlySet<ModelRequest> {
    return this.state.moves.heldBy.get(holder) ?? new Set();
  }

  /** What the plan of the next round is made from. Throws while a round is not closed. */
  snapshot(): PlanSnapshot {
    if (this.round !== undefined && this.round.state !== 'closed') throw new Error('The last round is not closed');
    const { longtail, groups, history } = this.state;
    return {
      stepsTrained: this.stepsTrained,
      longtailGroups: longtail.size,
      settlingGroups: groups.settling,
      finishedGroups: longtail.finishedGroups,
      pinnedGroups: longtail.pinnedGroups(this.stepsTrained + 1),
      control: this.control,
      history: history.read(),
    };
  }

  /**
   * Opens the round of a plan and takes its groups from the long-tail queue.
   * 'ROUND_SETTLING': groups that the plan counts on are still being cut; 'PLAN_STALE': they are not there.
   */
  open(opening: ModelOpening, nowMs: number): 'open' | 'completed' | 'ROUND_SETTLING' | 'PLAN_STALE' {
    const { longtail, groups, history } = this.state;
    const { policy, neededGroups, takeGroups } = opening;
    const terms = roundTerms(policy, opening, { control: this.control, history: history.read() });
    if (hasPins(terms.rules) && groups.settling > 0) return 'ROUND_SETTLING';
    if (longtail.size < takeGroups) {
      return longtail.size + groups.settling < takeGroups ? 'PLAN_STALE' : 'ROUND_SETTLING';
    }
    if (terms.control !== undefined) this.control = terms.control;
    const round: ModelRound = {
      ...roundZeros(),
      ...opening,
      rules: terms.rules,
      choice: terms.choice,
      openedAtMs: nowMs,
      places: terms.places && new Map(terms.places.map(({ domain, places }) => [domain, places])),
      keepTokens: terms.keepTokens ?? Infinity,
    };
    if (this.round !== undefined) this.left.push(this.round);
    this.round = round;
    while (round.takenGroups < takeGroups && this.takeNext(round, nowMs));
    if (round.places !== undefined) round.spare += Math.min(neededGroups, takeGroups) - round.takenGroups;
    round.state = 'open';
    this.state.review(round, nowMs);
    return round.state === 'open' ? 'open' : 'completed';
  }

  /** Takes one group. False when there is none, or none that may wait for a place. */
  private takeNext(round: ModelRound, nowMs: number): boolean {
    const { longtail, moves } = this.state;
    const group = longtail.next(round.step);
    if (group === undefined) return false;
    const isUrgent = isWhole(group) || group.pinStep <= round.step || round.rules.reservesTaken;
    if (isUrgent && openPlaces(round) <= 0) return false;
    longtail.remove(group);
    round.takenGroups += 1;
    round.live.add(group);
    Object.assign(group, { state: 'live', round, taken: true, pinned: isUrgent });
    if (isUrgent) round.reserved += 1;
    else countLiveOfDomain(round, group, 1);
    this.discardOld(round, group);
    this.trim(round, group);
    for (const request of group.requests) if (request.state === 'unfinished') moves.move(request, 'pending');
    if (isWhole(group)) this.state.placeWhole(round, group, nowMs, []);
    return true;
  }

  /** Throws away what the round may not use: everything, what is too old, or what is too much of the batch. */
  private discardOld(round: ModelRound, group: ModelGroup): void {
    const { onCut, maxVersionSpan } = round.rules;
    const oldest = maxVersionSpan === NO_VERSION_SPAN ? -1 : round.weightVersion - maxVersionSpan;
    const waste = (request: ModelRequest, reason: 'cut' | 'unaccepted' | 'version-span' | 'off-policy'): void => {
      wasteTokens(request, round, reason);
      if (request.state === 'finished') this.state.moves.move(request, 'unfinished');
    };
    if (onCut === 'discard') {
      for (const request of group.requests) {
        if (request.segments.length > 0) waste(request, request.state === 'finished' ? 'unaccepted' : 'cut');
      }
    } else if (group.oldestVersion !== undefined && group.oldestVersion < oldest) {
      for (const request of group.requests) {
        if (request.segments.length > 0 && request.segments[0]!.weightVersion < oldest) waste(request, 'version-span');
      }
    }
    group.oldestVersion = oldestVersionOf(group);
    if (group.oldestVersion === undefined || group.oldestVersion >= round.weightVersion) return;
    if (group.tokens <= round.keepTokens) {
      round.keepTokens -= group.tokens;
      return;
    }
    for (const request of group.requests) if (request.segments.length > 0) waste(request, 'off-policy');
    group.oldestVersion = undefined;
  }

  /** In a round without surplus samples, a group runs no more than it needs: the first of its siblings. */
  private trim(round: ModelRound, group: ModelGroup): void {
    if (round.rules.sampleOverProvision > 1) return;
    let room = group.samples - group.finished;
    for (const request of group.requests) {
      if (request.state !== 'unfinished') continue;
      if (room > 0) room -= 1;
      else this.state.drop(request, round, 'surplus');
    }
  }

  /** Adds new groups. */
  submit(submissions: readonly ModelSubmission[], nowMs: number): ModelGroup[] {
    const { moves, groups } = this.state;
    const round = this.round!;
    const added = submissions.map(({ groupId, samples, domain }) => {
      const group = newGroup(round, groupId, samples, domain);
      const launched = launchedSamples(samples, round.rules);
      for (let index = 0; index < launched; index++) group.requests.push(moves.add(group, index));
      round.live.add(group);
      countLiveOfDomain(round, group, 1);
      return group;
    });
    groups.submitted += added.length;
    round.submittedGroups += added.length;
    if (takesResults(round)) {
      this.state.review(round, nowMs);
    } else {
      groups.settling += added.length;
      round.settled = round.live.size === 0;
    }
    return added;
  }

  /** Gives out pending requests, at most `max`, and no more than the round may have in flight. */
  claim(max: number, holder: Holder): ModelRequest[] {
    const { moves } = this.state;
    const claims: ModelRequest[] = [];
    while (claims.length < max) {
      const request = moves.pending.peek();
      if (request === undefined) break;
      const { round } = request.group;
      if (!takesResults(round)) {
        this.state.cut(round, request);
        continue;
      }
      if (round.rules.concurrency > 0 && round.inFlight >= round.rules.concurrency) break;
      request.attempt += 1;
      request.holder = holder;
      request.started = false;
      moves.move(request, 'claimed');
      claims.push(request);
    }
    return claims;
  }

  /** The attempt has begun; with a segment, its tokens so far are safe. */
  checkpoint(request: ModelRequest, attempt: number, made?: ModelSegment): 'continue' | 'abort' | 'FENCED' {
    if (isFenced(request, attempt)) return 'FENCED';
    if (!HELD.has(request.state)) return request.state === 'pending' ? 'FENCED' : 'abort';
    request.started = true;
    if (made !== undefined && made.tokens >= (request.checkpoint?.tokens ?? 0)) request.checkpoint = made;
    if (request.state === 'claimed') this.state.moves.move(request, 'running');
    return request.state === 'cutting' || !takesResults(request.group.round) ? 'abort' : 'continue';
  }

  /** The sample is finished. */
  complete(
    request: ModelRequest,
    attempt: number,
    made: ModelSegment | undefined,
    nowMs: number,
  ): { state: 'finished' | 'unfinished' | 'dropped' | 'FENCED'; aborts: ModelAbort[] } {
    const aborts: ModelAbort[] = [];
    const answer = (state: 'finished' | 'unfinished' | 'dropped' | 'FENCED') => ({ state, aborts });
    if (isFenced(request, attempt)) return answer('FENCED');
    const { group } = request;
    const { round } = group;
    if (!HELD.has(request.state)) {
      if (request.state === 'finished' || request.state === 'unfinished') return answer(request.state);
      return answer(request.state === 'pending' ? 'FENCED' : 'dropped');
    }
    if (isEnding(group)) {
      this.endForgotten(round, request, made);
      return answer('dropped');
    }
    if (!takesResults(round) && round.rules.onCut === 'discard') {
      this.state.cut(round, request, made);
      return answer('unfinished');
    }
    keepTokens(request, made);
    this.state.moves.move(request, 'finished');
    round.requestsDone += 1;
    if (isWhole(group)) this.state.placeWhole(round, group, nowMs, aborts);
    else if (!takesResults(round) && group.live === 0) this.state.settle(round, group);
    return answer('finished');
  }

  /** The attempt ends without completing; a failure only when it counts. */
  fail(
    request: ModelRequest,
    attempt: number,
    {
      segment,
      countsAsFailure = false,
      retryable = true,
    }: { segment?: ModelSegment; countsAsFailure?: boolean; retryable?: boolean },
    nowMs: number,
  ): { state: ModelRequest['state'] | 'FENCED'; aborts: ModelAbort[] } {
    const aborts: ModelAbort[] = [];
    if (isFenced(request, attempt) || request.state === 'finished') return { state: 'FENCED', aborts };
    const { group } = request;
    const { round } = group;
    if (!HELD.has(request.state)) return { state: request.state, aborts };
    if (isEnding(group)) this.endForgotten(round, request, segment);
    else if (!takesResults(round)) this.state.cut(round, request, segment);
    else if (countsAsFailure && (++request.failures > round.rules.maxFailures || !retryable)) {
      this.state.fail(round, request, nowMs, aborts, segment);
    } else this.putBack(request, segment);
    return { state: request.state, aborts };
  }

  /** All that a holder has comes back, with the tokens of the last checkpoints; no failure. */
  voidHolder(holder: Holder): void {
    for (const request of this.held(holder)) {
      const { group } = request;
      const { round } = group;
      if (isEnding(group)) this.endForgotten(round, request);
      else if (!takesResults(round)) this.state.cut(round, request);
      else this.putBack(request);
    }
  }

  private putBack(request: ModelRequest, last?: ModelSegment): void {
    keepTokens(request, last);
    this.state.moves.move(request, 'pending', true);
  }

  /** Of a group that needs it no more: it is whole, or was dropped. */
  private endForgotten(round: ModelRound, request: ModelRequest, last?: ModelSegment): void {
    if (request.group.state === 'dropped') this.state.drop(request, round, 'aborted', last);
    else this.state.endSurplus(round, request, last);
  }

  /** The round's deadline has come: it completes with what it has. */
  expire(nowMs: number): void {
    const round = this.round;
    if (round?.state === 'open') this.state.complete(round, 'deadline', nowMs);
  }

  /** One look at what completed rounds did not accept. Returns whose holders are to be told, again each time. */
  cut(): ModelAbort[] {
    const aborts: ModelAbort[] = [];
    for (const round of [...this.left, ...(this.round === undefined ? [] : [this.round])]) {
      if (takesResults(round)) continue;
      for (const group of round.live) this.cutGroup(round, group, aborts);
    }
    return aborts;
  }

  private cutGroup(round: ModelRound, group: ModelGroup, aborts: ModelAbort[]): void {
    for (const request of group.requests) {
      if (request.state === 'pending') this.state.cut(round, request);
      else if (HELD.has(request.state)) {
        if (request.state !== 'cutting') this.state.moves.move(request, 'cutting');
        aborts.push({ request, attempt: request.attempt });
      }
    }
    if (group.live === 0 && group.state === 'live') this.state.settle(round, group);
  }

  /** Drops a live or unfinished group: it is never trained. Returns whose holders are to be told. */
  dropGroup(group: ModelGroup, nowMs: number): ModelAbort[] {
    const { longtail, groups, moves } = this.state;
    const aborts: ModelAbort[] = [];
    const { round } = group;
    if (group.state === 'unfinished') longtail.remove(group);
    else if (group.state === 'live') this.state.leaveDropped(round, group);
    else return aborts;
    group.state = 'dropped';
    groups.dropped += 1;
    for (const request of group.requests) {
      if (request.state === 'claimed' || request.state === 'running' || request.state === 'cutting') {
        if (request.state !== 'cutting') moves.move(request, 'cutting');
        aborts.push({ request, attempt: request.attempt });
      } else if (request.state !== 'dropped' && request.state !== 'failed') {
        this.state.drop(request, round, 'aborted');
      }
    }
    this.state.review(round, nowMs);
    return aborts;
  }

  /** The trainer has trained on the completed round. */
  close(): void {
    const round = this.round!;
    if (round.state !== 'completed') throw new Error('The round is not completed');
    round.state = 'closed';
    this.stepsTrained += 1;
    this.state.groups.trained += round.accepted.length;
    this.state.history.record(round);
  }

  /** Counts the accepted groups of closed rounds as trained and forgets them, in order, up to one with a live surplus. */
  fold(): void {
    for (const round of [...this.left, ...(this.round === undefined ? [] : [this.round])]) {
      if (round.state !== 'closed') continue;
      for (const group of round.accepted) {
        if (group.state === 'trained') continue;
        if (group.live > 0) break;
        group.state = 'trained';
        for (const request of group.requests)
          if (request.state === 'finished') this.state.moves.move(request, 'trained');
      }
    }
    for (let index = this.left.length - 1; index >= 0; index--) {
      const { accepted, live } = this.left[index]!;
      if (live.size === 0 && accepted.every(({ state }) => state === 'trained')) this.left.splice(index, 1);
    }
  }

  /** Groups that the open round still needs and nothing can fill. */
  shortfall(): number {
    return this.round !== undefined && takesResults(this.round) ? this.state.shortfall(this.round) : 0;
  }

  /** What an adaptive policy chose for the round. */
  get choice(): TailChoice | undefined {
    return this.round?.choice;
  }
}

const isFenced = (request: ModelRequest, attempt: number): boolean => request.attempt !== attempt;

/** Nothing of its live requests is wanted any more. */
const isEnding = (group: ModelGroup): boolean => group.state === 'dropped' || isWhole(group);

function oldestVersionOf(group: ModelGroup): number | undefined {
  let oldest: number | undefined;
  for (const { segments } of group.requests) {
    const version = segments[0]?.weightVersion;
    if (version !== undefined && (oldest === undefined || version < oldest)) oldest = version;
  }
  return oldest;
}

function newGroup(round: ModelRound, groupId: string, samples: number, domain: string | undefined): ModelGroup {
  return {
    groupId,
    domain,
    samples,
    requests: [],
    firstStep: round.step,
    state: 'live',
    round,
    live: 0,
    finished: 0,
    tokens: 0,
    longest: 0,
    cuts: 0,
    wasCut: false,
    taken: false,
    pinned: false,
    held: false,
    place: 0,
    pinStep: NEVER,
  };
}

function roundZeros() {
  return {
    state: 'opening' as ModelRound['state'],
    settled: false,
    takenGroups: 0,
    submittedGroups: 0,
    live: new Set<ModelGroup>(),
    accepted: [],
    failed: [],
    held: new Set<ModelGroup>(),
    droppedGroups: 0,
    reserved: 0,
    spare: 0,
    liveOfDomain: new Map<string, number>(),
    inFlight: 0,
    requestsDone: 0,
    requestsCut: 0,
    groupsRequeued: 0,
    wasted: {},
    acceptedTokens: 0,
    longestTokens: 0,
    bulkGroups: 0,
    bulkMs: 0,
    tailGroups: 0,
    tailMs: 0,
  };
}
