import type { ModelGroup, ModelRound } from './round-model.types';

/** Whether the round is not completed yet. */
export const takesResults = (round: ModelRound): boolean => round.state === 'open' || round.state === 'opening';

/** Whether the group's requests go to the long-tail queue, whatever their holders report. */
export const isCut = ({ round, state }: ModelGroup): boolean => !takesResults(round) || state === 'leaving';

/** Whether the group goes to the long-tail queue as soon as none of its requests is live. */
export const isSettling = (group: ModelGroup): boolean =>
  group.state === 'leaving' || (group.state === 'live' && !takesResults(group.round));

/** Whether the round discards cut tokens. A cancelled round keeps cut tokens, for the policy of a later round. */
export const isDiscarding = (round: ModelRound): boolean =>
  round.rules.onCut === 'discard' && round.state !== 'cancelled';
