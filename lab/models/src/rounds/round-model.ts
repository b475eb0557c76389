import type { RewardOutcome } from '@broomwagon/contracts';
import {
  computeDispatch,
  hasPins,
  launchedSamples,
  type PlanProgress,
  roundTerms,
  type TailControl,
} from '@broomwagon/policies';
import { AttemptTransitions } from './attempt-transitions';
import type { GroupTransitions } from './group-transitions';
import { takesResults } from './where-groups-go';
import { newGroup, newRound } from './new-round';
import { countLiveOfDomain } from './places';
import type {
  ModelAbort,
  ModelGroup,
  ModelOpening,
  ModelRequest,
  ModelRound,
  ModelSubmission,
} from './round-model.types';
import { isExcluded, rewardGroup } from './reward-group';
import { cancelRound, giveBack, trainGroup } from './reconcile-round';
import { takeNext } from './take-next';

/**
 * The rounds of one job: reference model of the transitions that the Lua scripts of libs/state make, without I/O,
 * paging or a clock of its own. A differential test drives both with the same events; the laboratory drives the model
 * alone, with millions of requests: no event reads more than one group, except the cut, which reads the remaining
 * groups of a round.
 *
 * A step, as the laboratory drives it (times are any milliseconds that do not go back):
 *
 *     const plan = planRound(model.progress(), { groupsPerStep, remainingGroups, policy });
 *     model.open({ ...plan, policy, weightVersion }, now);         // takes from the long-tail queue
 *     model.submit(groups, now);                                   // exactly plan.newGroups of them
 *     const requests = model.claim(count, holder, now);            // whenever a holder has room; [] at the gate
 *     model.save(request, request.attempt, segment);         // optional: started, with the tokens so far
 *     const { aborts } = model.complete(request, request.attempt, segment, now);
 *     // once the round's state is `completed`, since it has its groups:
 *     for (const { request, attempt } of model.cut()) ...       // each holder stops, and confirms with
 *     model.fail(request, attempt, { segment }, now);              // the tokens generated until then
 *     model.close(); model.fold();                                 // trained
 *
 * `aborts` of any answer are attempts whose holders must stop and confirm with `fail` (of surplus samples, and of a
 * failed group, which needs no confirmation). `request.segments` are the tokens that a claimed request already has: an
 * engine resumes after `request.tokens`. A message about an attempt that has ended is refused as 'FENCED' and changes
 * nothing.
 */
export class RoundModel extends AttemptTransitions {
  private control: TailControl = {};
  private stepsTrained = 0;
  /** The round that was opened last. */
  round?: ModelRound;
  /** Completed and closed rounds with live or unfolded groups, oldest first. */
  private readonly left: ModelRound[] = [];
  /** Ids of groups that count as trained and were never submitted here. */
  private readonly unknownTrained = new Set<string>();

  get requestCounts(): GroupTransitions['moves']['requestCounts'] {
    return this.state.moves.requestCounts;
  }

  /** Numbers of groups: submitted, trained, excluded, failed, dropped, and settling into the long-tail queue. */
  get groups(): GroupTransitions['groups'] {
    return this.state.groups;
  }

  get longtail(): GroupTransitions['longtail'] {
    return this.state.longtail;
  }

  /** Input for the plan of the next round. Throws while a round is not closed. */
  progress(): PlanProgress {
    if (this.round !== undefined && !isOver(this.round)) throw new Error('The last round is not closed');
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
   * 'ROUND_SETTLING': groups that the plan needs are still being cut; 'PLAN_STALE': they do not exist.
   */
  open(opening: ModelOpening, nowMs: number): 'open' | 'completed' | 'ROUND_SETTLING' | 'PLAN_STALE' {
    const { longtail, groups, history } = this.state;
    const { policy, neededGroups, takeGroups, measured, resolved } = opening;
    const past = { control: this.control, history: history.read(), measured };
    const terms = roundTerms(policy, opening, past, resolved);
    if (hasPins(terms.rules) && groups.settling > 0) return 'ROUND_SETTLING';
    if (longtail.size < takeGroups) {
      return longtail.size + groups.settling < takeGroups ? 'PLAN_STALE' : 'ROUND_SETTLING';
    }
    const round = newRound(opening, terms, nowMs);
    if (this.round !== undefined) this.left.push(this.round);
    this.round = round;
    while (round.takenGroups < takeGroups && takeNext(this.state, round, nowMs));
    if (round.places !== undefined && round.rules.reservesTaken) {
      round.spare += Math.min(neededGroups, takeGroups) - round.takenGroups;
    }
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
      const { samples, maxTokens = 0, lengths } = submission;
      moves.add(group, launched, computeDispatch(round.rules.dispatchOrder, { samples, maxTokens }, lengths));
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

  /** Takes the rewards of an accepted group of a round that is not closed; see `round.reward`. */
  reward(group: ModelGroup, isEqual: boolean, remainingGroups: number, nowMs: number): RewardOutcome {
    return rewardGroup(this.state, group, { isEqual, remainingGroups, nowMs });
  }

  /** Completes the open round at its deadline, with the groups accepted so far. */
  expire(nowMs: number): void {
    const round = this.round;
    if (round?.state === 'open') this.state.complete(round, 'deadline', nowMs);
  }

  /** Cuts groups that completed rounds did not accept. Returns the attempts to stop, again with each call. */
  cut(): ModelAbort[] {
    const aborts: ModelAbort[] = [];
    for (const round of [...this.left, ...(this.round === undefined ? [] : [this.round])]) {
      if (takesResults(round)) continue;
      for (const group of round.live) this.state.cutGroup(round, group, aborts);
    }
    for (const group of this.state.leaving) this.state.cutGroup(group.round, group, aborts);
    return aborts;
  }

  /** Drops a live or unfinished group: it is never trained. Returns the attempts that holders must stop. */
  dropGroup(group: ModelGroup, nowMs: number): ModelAbort[] {
    return this.state.dropGroup(group, nowMs);
  }

  /** Ends one sample for good; its group continues, or is dropped if it cannot. Returns the attempts to stop. */
  stopSample(request: ModelRequest, nowMs: number): ModelAbort[] {
    const aborts: ModelAbort[] = [];
    if (request.state === 'finished' || request.state === 'failed' || request.state === 'dropped') return aborts;
    if (!MAY_BE_DROPPED.has(request.group.state)) return aborts;
    return this.state.stopSample(request, 'aborted', nowMs, aborts) ? aborts : this.dropGroup(request.group, nowMs);
  }

  /** Closes the completed round after the trainer has trained on it. */
  close(): void {
    const round = this.round!;
    if (round.state !== 'completed') throw new Error('The round is not completed');
    round.state = 'closed';
    this.stepsTrained += 1;
    this.control = round.control ?? this.control;
    const excluded = round.accepted.filter(isExcluded).length;
    this.state.groups.excluded += excluded;
    this.state.groups.trained += round.accepted.length - excluded;
    this.state.history.record(round);
    this.state.history.forget(this.stepsTrained);
  }

  /**
   * Counts a step that the trainer has trained with these groups, whatever their state here: each counts as trained
   * once. A round of this or an earlier step is cancelled: its remaining groups go to the long-tail queue as they are
   * cut.
   */
  reconcile(
    step: number,
    groups: readonly (ModelGroup | ModelSubmission)[],
  ): { counted: number; aborts: ModelAbort[] } {
    const aborts: ModelAbort[] = [];
    const { round } = this;
    const isGivenUp = round !== undefined && !isOver(round) && round.step <= step;
    const accepted = isGivenUp ? cancelRound(this.state, round) : [];
    const counted = groups.filter((group) => this.train(group, aborts)).length;
    if (isGivenUp) giveBack(this.state, round, accepted);
    this.stepsTrained = Math.max(this.stepsTrained, step);
    this.state.history.forget(this.stepsTrained);
    return { counted, aborts };
  }

  /** Counts a group as trained. False if it is counted already, or will be with its closed round. */
  private train(group: ModelGroup | ModelSubmission, aborts: ModelAbort[]): boolean {
    if ('requests' in group) return trainGroup(this.state, group, aborts);
    if (this.unknownTrained.has(group.groupId)) return false;
    this.unknownTrained.add(group.groupId);
    this.requestCounts.submitted += group.samples;
    this.requestCounts.trained += group.samples;
    this.groups.submitted += 1;
    this.groups.trained += 1;
    return true;
  }

  /**
   * Counts the accepted groups of closed rounds as trained and forgets them, in order, up to a group with live surplus
   * samples.
   */
  fold(): void {
    for (const round of [...this.left, ...(this.round === undefined ? [] : [this.round])]) {
      if (round.state !== 'closed') continue;
      for (const group of round.accepted) {
        if (isDone(group)) continue;
        if (group.live > 0) break;
        group.state = isExcluded(group) ? 'excluded' : 'trained';
        const end = group.state === 'trained' ? 'trained' : 'dropped';
        for (const request of group.requests) if (request.state === 'finished') this.state.moves.move(request, end);
      }
    }
    for (let index = this.left.length - 1; index >= 0; index--) {
      const { accepted, live } = this.left[index]!;
      if (live.size === 0 && accepted.every(isDone)) this.left.splice(index, 1);
    }
  }
}

const MAY_BE_DROPPED: ReadonlySet<ModelGroup['state']> = new Set(['live', 'leaving', 'unfinished']);
const isDone = ({ state }: ModelGroup): boolean => state === 'trained' || state === 'excluded';
const isOver = ({ state }: ModelRound): boolean => state === 'closed' || state === 'cancelled';
