import { GroupTransitions } from './group-transitions';
import { isCut, isDiscarding, takesResults } from './where-groups-go';
import { isWhole } from './longtail-queue';
import { HELD, keepTokens, madeByAttempt } from './request-moves';
import type { Holder, ModelAbort, ModelRequest, ModelRound, ModelSegment } from './round-model.types';

/** Acts of holders on requests, and their effects: the transitions of libs/state/src/requests. */
export class AttemptTransitions {
  protected readonly state = new GroupTransitions();
  /** Requests whose holders must stop them for a move. */
  private readonly moving = new Set<ModelRequest>();

  /** Requests that the holder has. */
  held(holder: Holder): ReadonlySet<ModelRequest> {
    return this.state.moves.heldBy.get(holder) ?? new Set();
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

  /** Marks the attempt as started; stores its tokens so far if a segment is given. */
  save(request: ModelRequest, attempt: number, made?: ModelSegment): 'continue' | 'abort' | 'FENCED' {
    if (isFenced(request, attempt)) return 'FENCED';
    if (!HELD.has(request.state)) return request.state === 'pending' ? 'FENCED' : 'abort';
    request.started = true;
    if (made !== undefined && made.tokens >= (request.savedSegment?.tokens ?? 0)) request.savedSegment = made;
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
    if (!takesResults(round) && isDiscarding(round)) {
      this.state.cut(round, request, made);
      return answer('unfinished');
    }
    keepTokens(request, made, true);
    this.state.moves.move(request, 'finished');
    round.requestsDone += 1;
    this.state.moves.followProbe(group);
    if (isWhole(group)) this.state.placeWhole(round, group, nowMs, aborts);
    else if (isCut(group) && group.live === 0) this.state.settle(round, group);
    return answer('finished');
  }

  /** Ends an attempt that did not complete; it is a failure only with `countsAsFailure`. */
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
    else if (isCut(group)) this.state.cut(round, request, segment);
    else if (timedOut) this.state.timeOut(round, request, nowMs, aborts, segment);
    else if (countsAsFailure && !retryable && request.state !== 'cutting') {
      countFailure(request, segment);
      this.state.fail(round, request, nowMs, aborts, segment);
    } else this.putBack(request, countsAsFailure ? 'failures' : 'returns', nowMs, aborts, segment);
    return { state: request.state, aborts };
  }

  /**
   * Takes the group of an unfinished sample out of its round, as if the group was cut: by the holder, who hands the
   * sample in, or by an operator.
   */
  requeue(
    request: ModelRequest,
    attempt: number,
    nowMs: number,
    handedIn?: { last: ModelSegment },
  ): { state: ModelRequest['state'] | 'FENCED'; aborts: ModelAbort[] } {
    const aborts: ModelAbort[] = [];
    const { group } = request;
    const { round } = group;
    const hasEnded = request.state === 'finished' || request.state === 'pending';
    if (isFenced(request, attempt) || hasEnded) return { state: 'FENCED', aborts };
    if (!HELD.has(request.state)) return { state: request.state, aborts };
    if (isEnding(request)) {
      if (handedIn) this.endForgotten(round, request, handedIn.last);
      return { state: request.state, aborts };
    }
    const leaves = group.state === 'live' && takesResults(round);
    if (leaves) this.state.enter(round, group);
    if (handedIn) this.state.cut(round, request, handedIn.last);
    if (leaves) {
      this.state.cutGroup(round, group, aborts);
      this.state.review(round, nowMs);
    }
    return { state: request.state, aborts };
  }

  /** Takes all requests of an expired holder back, with the tokens of their last partial saves; not as failures. */
  expiredHolder(holder: Holder, nowMs: number): void {
    for (const request of this.held(holder)) {
      const { group } = request;
      const { round } = group;
      if (isEnding(request)) this.endForgotten(round, request);
      else if (isCut(group)) this.state.cut(round, request);
      else this.putBack(request, 'returns', nowMs, []);
    }
  }

  /**
   * Moves a request to another server: at once if no holder has it, else when its holder has confirmed the stop.
   */
  move(request: ModelRequest): { state: 'moved' | 'sent' | 'completed-first' | 'ending'; aborts: ModelAbort[] } {
    const { state, group } = request;
    if (state === 'finished' || state === 'trained') return { state: 'completed-first', aborts: [] };
    const isLive = state === 'pending' || state === 'claimed' || state === 'running';
    if (group.state !== 'live' || !takesResults(group.round) || !isLive) return { state: 'ending', aborts: [] };
    if (state === 'pending') return { state: 'moved', aborts: [] };
    this.state.moves.move(request, 'cutting');
    this.moving.add(request);
    return { state: 'sent', aborts: [{ request, attempt: request.attempt }] };
  }

  /** Lets holders that have not confirmed the stop for a move keep their requests. Returns the number of requests. */
  expireMoves(): number {
    let expired = 0;
    for (const request of this.moving) {
      const { state, group } = request;
      this.moving.delete(request);
      if (state !== 'cutting' || group.state !== 'live' || !takesResults(group.round) || isEnding(request)) continue;
      this.state.moves.move(request, 'running');
      expired += 1;
    }
    return expired;
  }

  /** Stops all held requests for new weights. A confirmed request is pending again, with its tokens. */
  stopHeld(): ModelAbort[] {
    const held = [...this.state.moves.heldBy.values()].flatMap((requests) => [...requests]);
    for (const request of held) if (request.state !== 'cutting') this.state.moves.move(request, 'cutting');
    return held.map((request) => ({ request, attempt: request.attempt }));
  }

  /**
   * Makes a request pending again, or fails it for good if it exceeds the failures or returns that its round allows. A
   * requested stop counts as neither.
   */
  private putBack(
    request: ModelRequest,
    as: 'failures' | 'returns',
    nowMs: number,
    aborts: ModelAbort[],
    last?: ModelSegment,
  ): void {
    const { round } = request.group;
    const most = as === 'failures' ? round.rules.maxFailures : round.rules.maxReturns;
    if (request.state !== 'cutting' && (as === 'failures' ? countFailure(request, last) : ++request.returns) > most) {
      this.state.fail(round, request, nowMs, aborts, last);
      return;
    }
    keepTokens(request, last);
    this.state.moves.move(request, 'pending', true);
  }

  /** Ends a request that was stopped for good or whose group does not need it: the group is whole or was dropped. */
  private endForgotten(round: ModelRound, request: ModelRequest, last?: ModelSegment): void {
    if (request.group.state === 'dropped') this.state.drop(request, round, request.stopped ?? 'aborted', last);
    else this.state.endSurplus(round, request, last);
  }
}

/** Counts a failure, as the first one if the request has more tokens than at the failure before. */
function countFailure(request: ModelRequest, last: ModelSegment | undefined): number {
  const tokens = request.tokens + (madeByAttempt(request, last)?.tokens ?? 0);
  if (request.tokensAtFailure === undefined || tokens > request.tokensAtFailure) {
    request.failures = 0;
    request.tokensAtFailure = tokens;
  }
  return ++request.failures;
}

const isFenced = (request: ModelRequest, attempt: number): boolean => request.attempt !== attempt;

/** Whether the result of the request is not needed any more, though the request may be live. */
const isEnding = ({ stopped, group }: ModelRequest): boolean =>
  stopped !== undefined || group.state === 'dropped' || isWhole(group);
