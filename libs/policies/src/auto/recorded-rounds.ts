import { loadedRoundTime, type RoundMoment } from '../over-provision/loaded-round-time';
import type { StepRecord } from '../tail';
import { spread } from '../what-if/spread';
import type { RecordedSamples } from '../what-if/what-if';
import { readGroups, type RecordedGroup } from './recorded-groups';

/** Groups of closed rounds, each with the number of new groups that the round launched. */
export interface Recording {
  groups: readonly (RecordedGroup & { newGroups: number })[];
  /** Accepted groups of the largest round. */
  groupsPerStep: number;
  /** Samples of the largest group. */
  samples: number;
}

/** Fields of a closed round that a recording reads. */
export type RecordedRound = Pick<StepRecord, 'acceptedGroups' | 'newGroups' | 'recorded'>;

/** Maximum steps of a replay. Large steps are fewer, so that a replay has about `SAMPLES_OF_REPLAY` samples. */
const MAX_STEPS = 60;
const FEWEST_STEPS = 20;
const SAMPLES_OF_REPLAY = 65_536;
/** Maximum groups of a replayed step. Larger steps are replayed at a smaller scale. */
const GROUPS_OF_STEP = 1_024;
/** Maximum number of moments for the fit of a round time. */
const MOMENTS = 1_024;
/** First steps, which the means leave out: the long-tail queue has not reached its usual length yet. */
const WARM_UP_STEPS = 6;

/** Collects the groups of closed rounds; yields after each round. */
export function* collectRecording(history: readonly RecordedRound[]): Generator<void, Recording> {
  const groups: (RecordedGroup & { newGroups: number })[] = [];
  for (const { recorded = '', newGroups = 0 } of history) {
    for (const group of readGroups(recorded)) groups.push({ ...group, newGroups });
    yield;
  }
  return {
    groups,
    groupsPerStep: Math.max(1, ...history.map(({ acceptedGroups }) => acceptedGroups)),
    samples: Math.max(1, ...groups.map(({ lengths }) => lengths.length)),
  };
}

/**
 * Builds a data set for a replay, with groups drawn from the recording, the same in each call. Yields between its
 * parts.
 */
export function* buildReplay({ groups, groupsPerStep, samples }: Recording): Generator<void, RecordedSamples> {
  const replayedGroups = Math.min(GROUPS_OF_STEP, groupsPerStep);
  const steps = Math.round(SAMPLES_OF_REPLAY / (replayedGroups * samples));
  const counted = Math.max(FEWEST_STEPS, Math.min(MAX_STEPS, steps));
  const moments = buildMoments(groups);
  yield;
  const time = loadedRoundTime(moments);
  const drawn = Array.from(
    { length: replayedGroups * (counted + WARM_UP_STEPS) },
    (_, index) => groups[spread(index) % groups.length]!.lengths,
  );
  yield;
  return {
    groups: drawn,
    groupsPerStep: replayedGroups,
    time: (tokens, madeTokens) => time(tokens, (madeTokens * groupsPerStep) / replayedGroups),
    warmUpSteps: WARM_UP_STEPS,
  };
}

/**
 * Returns the moments at which rounds accepted new groups. At such a moment, every sample of the round that still runs
 * has as many tokens as the longest sample of the group.
 */
function buildMoments(groups: Recording['groups']): RoundMoment[] {
  const meanUpTo = meanOfShorter(groups.flatMap(({ lengths }) => lengths));
  const everyNth = Math.ceil(groups.length / MOMENTS);
  return groups.flatMap(({ lengths, finishedMs, newGroups }, index) => {
    if (finishedMs === undefined || index % everyNth !== 0) return [];
    const tokens = Math.max(...lengths);
    return [{ tokens, madeTokens: newGroups * lengths.length * meanUpTo(tokens), ms: finishedMs }];
  });
}

/** Returns a function for the mean of min(length, tokens) over all lengths. */
function meanOfShorter(lengths: readonly number[]): (tokens: number) => number {
  const ascending = lengths.toSorted((one, other) => one - other);
  const sums = [0];
  for (const length of ascending) sums.push(sums.at(-1)! + length);
  return (tokens) => {
    let [low, high] = [0, ascending.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ascending[middle]! <= tokens) low = middle + 1;
      else high = middle;
    }
    return (sums[low]! + (ascending.length - low) * tokens) / Math.max(1, ascending.length);
  };
}
