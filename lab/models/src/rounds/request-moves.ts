import type { WasteReason } from '@broomwagon/contracts';
import type { Dispatch } from '@broomwagon/policies';
import { PendingQueue } from './pending-queue';
import type { Holder, ModelGroup, ModelRequest, ModelRound, ModelSegment, RequestState } from './round-model.types';

export const HELD: ReadonlySet<RequestState> = new Set(['claimed', 'running', 'cutting']);
const LIVE: ReadonlySet<RequestState> = new Set(['pending', 'claimed', 'running', 'cutting']);
export const REQUEST_STATES = [
  'pending',
  'claimed',
  'running',
  'cutting',
  'unfinished',
  'finished',
  'trained',
  'failed',
  'dropped',
] as const satisfies readonly RequestState[];

/** State changes of requests, with all they update: the counts, the holder, the pending queue, the group's counters. */
export class RequestMoves {
  readonly requestCounts: Record<RequestState | 'submitted', number>;
  readonly pending = new PendingQueue();
  readonly heldBy = new Map<Holder, Set<ModelRequest>>();

  constructor() {
    const zeros = REQUEST_STATES.map((state) => [state, 0] as const);
    this.requestCounts = { submitted: 0, ...Object.fromEntries(zeros) } as Record<RequestState | 'submitted', number>;
  }

  /** Gives a group its requests, all pending. */
  add(group: ModelGroup, launched: number, dispatch: Dispatch | undefined): void {
    for (let index = 0; index < launched; index++) {
      group.requests.push({
        group,
        index,
        state: 'pending',
        attempt: 0,
        failures: 0,
        returns: 0,
        started: false,
        segments: [],
        tokens: 0,
        ticket: 0,
      });
    }
    this.requestCounts.submitted += launched;
    this.requestCounts.pending += launched;
    group.live += launched;
    const arrival = this.pending.addGroup(group.requests, dispatch);
    if (dispatch?.probes) group.probedAt = arrival;
  }

  /** After a sample of a probed group finished, expects its pending samples to be as long as the longest sample. */
  followProbe({ probedAt, longest, requests }: ModelGroup): void {
    if (probedAt === undefined) return;
    for (const request of requests) this.pending.expect(request, probedAt + request.index, longest);
  }

  /** @param front ahead of all requests that were never started; only used for `pending` */
  move(request: ModelRequest, to: RequestState, front = false): void {
    const from = request.state;
    const { group } = request;
    request.state = to;
    this.requestCounts[from] -= 1;
    this.requestCounts[to] += 1;
    if (to === 'pending') this.pending.add(request, front);
    const isHeld = HELD.has(to);
    if (HELD.has(from) !== isHeld) {
      this.index(request, isHeld);
      group.round.inFlight += isHeld ? 1 : -1;
    }
    if (LIVE.has(from) !== LIVE.has(to)) group.live += LIVE.has(to) ? 1 : -1;
    if (from === 'finished') group.finished -= 1;
    if (to === 'finished') group.finished += 1;
  }

  private index(request: ModelRequest, isHeld: boolean): void {
    const holder = request.holder!;
    const held = this.heldBy.get(holder);
    if (!isHeld) {
      held!.delete(request);
      if (held!.size === 0) this.heldBy.delete(holder);
    } else if (held === undefined) {
      this.heldBy.set(holder, new Set([request]));
    } else {
      held.add(request);
    }
  }
}

/**
 * Segment of an attempt: of its last message, or of its partial save if that has more tokens (messages may overtake
 * each other).
 */
export function madeByAttempt(request: ModelRequest, made: ModelSegment | undefined): ModelSegment | undefined {
  const { savedSegment } = request;
  return made !== undefined && made.tokens >= (savedSegment?.tokens ?? 0) ? made : savedSegment;
}

/**
 * Adds the tokens of an ended attempt to its sample as a segment. The last segment of a finished sample may have no
 * tokens: it has the text that the segment before it holds back.
 */
export function keepTokens(request: ModelRequest, last: ModelSegment | undefined, isFinished = false): void {
  const made = madeByAttempt(request, last);
  request.savedSegment = undefined;
  if (made === undefined) return;
  if (made.tokens > 0 || isFinished) request.segments.push(made);
  if (made.tokens === 0) return;
  request.tokens += made.tokens;
  const { group } = request;
  group.tokens += made.tokens;
  group.longest = Math.max(group.longest, request.tokens);
  group.oldestVersion = Math.min(group.oldestVersion ?? made.weightVersion, made.weightVersion);
}

/** Discards all tokens of the request and counts them as waste of the round. */
export function wasteTokens(request: ModelRequest, round: ModelRound, reason: WasteReason, last?: ModelSegment): void {
  keepTokens(request, last);
  if (request.tokens === 0) return;
  countWaste(round, reason, request.tokens);
  request.group.tokens -= request.tokens;
  request.segments = [];
  request.tokens = 0;
}

export function countWaste(round: ModelRound, reason: WasteReason, tokens: number): void {
  if (tokens > 0) round.wasted[reason] = (round.wasted[reason] ?? 0) + tokens;
}
