import type { ModelGroup, ModelRound } from './round-model.types';

/** It is not completed. */
export const takesResults = (round: ModelRound): boolean => round.state === 'open' || round.state === 'opening';

/** Its requests go to the long-tail queue, whatever their holders report. */
export const isCut = ({ round, state }: ModelGroup): boolean => !takesResults(round) || state === 'leaving';

/** It goes to the long-tail queue as soon as nothing of it is live. */
export const isSettling = (group: ModelGroup): boolean =>
  group.state === 'leaving' || (group.state === 'live' && !takesResults(group.round));

/** What it cuts is thrown away. What a cancelled round gives back continues under the policy of a later one. */
export const isDiscarding = (round: ModelRound): boolean =>
  round.rules.onCut === 'discard' && round.state !== 'cancelled';
