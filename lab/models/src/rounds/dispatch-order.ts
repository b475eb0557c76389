import { expectedLongest } from '../prompt-lengths';
import type { RequestMoves } from './request-moves';
import type { ModelGroup, ModelRound, ModelSubmission } from './round-model.types';

// Which requests of a round are claimed first, as libs/state/src/requests/dispatch.lua decides it.

const STEP_TOKENS = 64;
const AHEAD_A_STEP = 2 ** 18;
const PROBE = 2 ** 38;

function aheadOf(tokens: number): number {
  return Math.floor(tokens / STEP_TOKENS) * AHEAD_A_STEP;
}

/** Puts the requests of a new group into the pending queue, in the order of its round. */
export function addRequests(
  moves: RequestMoves,
  round: ModelRound,
  group: ModelGroup,
  { maxTokens = 0, lengths }: Pick<ModelSubmission, 'maxTokens' | 'lengths'>,
  launched: number,
): void {
  const { dispatchOrder } = round.rules;
  const isOrdered = dispatchOrder !== 'arrival';
  const ahead = isOrdered ? aheadOf(lengths ? expectedLongest(lengths, group.samples, maxTokens) : maxTokens) : 0;
  const probes = dispatchOrder === 'probe-first' && lengths === undefined;
  for (let index = 0; index < launched; index++) {
    const [request, number] = moves.add(group, index, probes && index === 0 ? PROBE : ahead);
    group.requests.push(request);
    if (probes && index === 0) group.probedAt = number;
  }
}

/** A sample of a group of unknown length has finished: the pending ones are expected to be as long as the longest. */
export function followProbe(moves: RequestMoves, { probedAt, longest, requests }: ModelGroup): void {
  if (probedAt === undefined) return;
  for (const request of requests) moves.pending.reorder(request, probedAt - aheadOf(longest) + request.index);
}
