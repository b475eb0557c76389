import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError, LIMITS, type Epoch, type GroupId, type JobId, type RoundId } from '@broomwagon/contracts';
import type { Operations } from './operations';
import { splitPages } from './pages';

const POLL_MS = 100;
const DEADLINE_MS = 60_000;
/** Reason of drops of groups that this trainer submits again. */
export const REMADE = 'tokens are not in the payload store';

interface Trainer {
  job: JobId;
  trainerEpoch: Epoch;
}

/**
 * Gives up the round of accepted groups that have lost tokens, and drops these groups, so that they may be submitted
 * again. The other groups of the round go to the long-tail queue with all their tokens, and come back in the next
 * round. If this trainer dies meanwhile, another trainer finds every group.
 * @throws BroomwagonError PAYLOAD_NOT_FOUND when Redis still knows the groups at the deadline
 */
export async function makeGroupsAgain(
  operations: Operations,
  trainer: Trainer,
  roundId: RoundId,
  groupIds: readonly GroupId[],
  signal?: AbortSignal,
): Promise<void> {
  const until = waiting(groupIds, signal);
  await operations.call('round.cancel', { ...trainer, roundId, mode: 'requeue', reason: REMADE });
  await until(async () => (await operations.call('round.status', { job: trainer.job, roundId })).settled);
  for (const page of splitPages(groupIds, LIMITS.groupsPerSubmit)) {
    await operations.call('longtail.drop', { ...trainer, groupIds: page, reason: REMADE });
    await until(() => areForgotten(operations, trainer, page));
  }
}

/**
 * Waits until the closed round of the groups is folded: from then on the groups may be submitted again.
 * @throws BroomwagonError PAYLOAD_NOT_FOUND when Redis still knows the groups at the deadline
 */
export async function untilForgotten(
  operations: Operations,
  trainer: Trainer,
  groupIds: readonly GroupId[],
  signal?: AbortSignal,
): Promise<void> {
  const until = waiting(groupIds, signal);
  for (const page of splitPages(groupIds, LIMITS.groupsPerReconcile))
    await until(() => areForgotten(operations, trainer, page));
}

async function areForgotten(operations: Operations, trainer: Trainer, groupIds: GroupId[]): Promise<boolean> {
  const { unknown } = await operations.call('job.reconcile', { ...trainer, groupIds });
  return unknown.length === groupIds.length;
}

/** Waits for one condition after another; all have one deadline. */
function waiting(groupIds: readonly GroupId[], signal?: AbortSignal) {
  const endsMs = performance.now() + DEADLINE_MS;
  return async (isDone: () => Promise<boolean>): Promise<void> => {
    while (!(await isDone())) {
      if (performance.now() > endsMs) {
        const message = `Payloads of ${groupIds.join(', ')} are missing, and the groups cannot be submitted again`;
        throw new BroomwagonError('PAYLOAD_NOT_FOUND', message);
      }
      await delay(POLL_MS, undefined, { signal });
    }
  };
}
