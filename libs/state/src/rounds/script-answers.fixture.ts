import { isBroomwagonError } from '@broomwagon/contracts';
import type { ModelGroup, ModelRequest, ModelSegment } from '@broomwagon/models';
import { attemptNumber } from '@broomwagon/testing';
import type { Ended } from '../../../../lab/models/src/rounds/round-follower.fixture';
import type { AttemptFence } from '../requests/request.store';
import { JOB } from './world-aborts.fixture';

// Conversions between arguments and answers of scripts and values of the model.

export const toRequestId = ({ group, index }: ModelRequest): string => `${JOB}/${group.groupId}/${index}`;

export const attemptName = ({ requestId, attempt }: Pick<AttemptFence, 'requestId' | 'attempt'>): string =>
  `${requestId.slice(JOB.length + 1)} ${attemptNumber(attempt)}`;

export const getErrorCode = (error: unknown): string => {
  if (!isBroomwagonError(error) || error.code === 'INTERNAL') throw error;
  return error.code;
};

export const ended = (answer: string | { state: string; aborts: AttemptFence[] }): Ended =>
  typeof answer === 'string'
    ? { state: answer, aborts: [] }
    : { state: answer.state, aborts: answer.aborts.map(attemptName).sort() };

/** An accepted group as in the results of a round. */
export const toGroupResult = (group: ModelGroup) => ({
  groupId: group.groupId,
  cuts: group.cuts,
  excluded: (group.round.outcomes.get(group) ?? 'kept') !== 'kept',
  samples: group.requests
    .filter(({ state }) => state === 'finished')
    .map(({ index, tokens, segments }) => ({
      index,
      tokens,
      segments: segments.map((segment) => [segment.attempt, segment.weightVersion, segment.tokens]),
    })),
});

export function wire({ attempt, weightVersion, tokens }: ModelSegment): { segment: string; tokens: number } {
  const segment = { attempt, serverId: 's', serverEpoch: 'e1', weightVersion, tokenCount: tokens, ref: 'ref' };
  return { segment: JSON.stringify(segment), tokens };
}
