import type { TailChoice } from '@broomwagon/contracts';
import { hasPins, launchedSamples, type TailControl } from '../tail';
import { GroupTransitions, takesResults } from './group-transitions';
import { isWhole } from './longtail-queue';
import { newGroup, newRound } from './new-round';
import { countLiveOfDomain } from './places';
import type { PlanSnapshot } from './plan-round';
import { roundTerms } from './round-terms';
import { HELD, keepTokens } from './request-moves';
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
import { takeNext } from './take-next';

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
 * group; a group that failed needs no confirmation). `request.segments` are the tokens that a claim brings along: an
 * engine resumes behind `request.tokens`. What a message says about an attempt that has ended is refused as 'FENCED' and
 * changes nothing.
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
    const round = newRound(opening, terms, nowMs);
    if (this.round !== undefined) this.left.push(this.round);
    this.round = round;
    while (round.takenGroups < takeGroups && takeNext(this.state, round, nowMs));
    if (round.places !== undefined) round.spare += Math.min(neededGroups, takeGroups) - round.takenGroups;
    round.state = 'open';
    this.state.review(round, nowMs);
    return round.state === 'open' ? 'open' : 'completed';
  }

  /** Adds new groups. */
  submit(submissions: readonly ModelSubmission[], nowMs: number): ModelGroup[] {
    const { moves, groups } = this.state;
    const round = this.round!;
    const added = submissions.map((submission) => {
      const group = newGroup(round, submission);
      const launched = launchedSamples(group.samples, round.rules);
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
    if (isEnding(request)) {
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
      timedOut = false,
    }: { segment?: ModelSegment; countsAsFailure?: boolean; retryable?: boolean; timedOut?: boolean },
    nowMs: number,
  ): { state: ModelRequest['state'] | 'FENCED'; aborts: ModelAbort[] } {
    const aborts: ModelAbort[] = [];
    if (isFenced(request, attempt) || request.state === 'finished') return { state: 'FENCED', aborts };
    const { group } = request;
    const { round } = group;
    if (!HELD.has(request.state)) return { state: request.state, aborts };
    if (isEnding(request)) this.endForgotten(round, request, segment);
    else if (!takesResults(round)) this.state.cut(round, request, segment);
    else if (timedOut) this.state.timeOut(round, request, nowMs, aborts, segment);
    else if (countsAsFailure && !retryable) {
      request.failures += 1;
      this.state.fail(round, request, nowMs, aborts, segment);
    } else this.putBack(request, countsAsFailure ? 'failures' : 'returns', nowMs, aborts, segment);
    return { state: request.state, aborts };
  }

  /** All that a holder has comes back, with the tokens of the last checkpoints; no failure. */
  voidHolder(holder: Holder, nowMs: number): void {
    for (const request of this.held(holder)) {
      const { group } = request;
      const { round } = group;
      if (isEnding(request)) this.endForgotten(round, request);
      else if (!takesResults(round)) this.state.cut(round, request);
      else this.putBack(request, 'returns', nowMs, []);
    }
  }

  /** Pending again; at the last time that its round allows it has failed for good. A stop that was asked for is free. */
  private putBack(
    request: ModelRequest,
    as: 'failures' | 'returns',
    nowMs: number,
    aborts: ModelAbort[],
    last?: ModelSegment,
  ): void {
    const { round } = request.group;
    const most = as === 'failures' ? round.rules.maxFailures : round.rules.maxReturns;
    if (request.state !== 'cutting' && ++request[as] > most) {
      this.state.fail(round, request, nowMs, aborts, last);
      return;
    }
    keepTokens(request, last);
    this.state.moves.move(request, 'pending', true);
  }

  /** Of a group that needs it no more: it is whole, or was dropped. */
  private endForgotten(round: ModelRound, request: ModelRequest, last?: ModelSegment): void {
    if (request.group.state === 'dropped') this.state.drop(request, round, request.stopped ?? 'aborted', last);
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
      for (const group of round.live) this.state.cutGroup(round, group, aborts);
    }
    return aborts;
  }

  /** Drops a live or unfinished group: it is never trained. Returns whose holders are to be told. */
  dropGroup(group: ModelGroup, nowMs: number): ModelAbort[] {
    return this.state.dropGroup(group, nowMs);
  }

  /** Ends one sample for good; its group goes on, or is dropped when it can not. Returns who is to be told. */
  stopSample(request: ModelRequest, nowMs: number): ModelAbort[] {
    const aborts: ModelAbort[] = [];
    if (request.state === 'finished' || request.state === 'failed' || request.state === 'dropped') return aborts;
    if (request.group.state !== 'live' && request.group.state !== 'unfinished') return aborts;
    return this.state.stopSample(request, 'aborted', nowMs, aborts) ? aborts : this.dropGroup(request.group, nowMs);
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

/** It is not wanted any more, though it may be live. */
const isEnding = ({ stopped, group }: ModelRequest): boolean =>
  stopped !== undefined || group.state === 'dropped' || isWhole(group);
