import type { Schemas } from '@broomwagon/admin-client';

type Round = Schemas['RoundStatus'];
type Summary = Schemas['RoundSummary'];

export interface Prediction {
  atMs: number;
  /** Basis of the prediction. */
  by: string;
}

/**
 * Predicts when a round has its groups: after the median time of earlier rounds of its kind. If there are no such
 * rounds, or this time is over, predicts by the mean pace of the round so far, which is too early for a long tail.
 */
export function predictedEnd(
  round: Round,
  rounds: readonly Summary[] | undefined,
  nowMs: number,
): Prediction | undefined {
  if (round.completedAtMs !== undefined) return undefined;
  const earlier = rounds?.flatMap(({ kind, roundId, openedAtMs, completedAtMs }) =>
    kind === round.kind && roundId !== round.roundId && completedAtMs !== undefined ? [completedAtMs - openedAtMs] : [],
  );
  if (earlier !== undefined && earlier.length > 0) {
    const median = earlier.toSorted((one, other) => one - other)[Math.floor(earlier.length / 2)]!;
    const atMs = round.openedAtMs + median;
    if (atMs > nowMs) return { atMs, by: `as the earlier ${round.kind} rounds: their median` };
  }
  if (round.acceptedGroups === 0) return undefined;
  const msPerGroup = (nowMs - round.openedAtMs) / round.acceptedGroups;
  const left = round.neededGroups - round.acceptedGroups;
  return { atMs: nowMs + left * msPerGroup, by: 'mean pace of this round; its tail may take longer' };
}
