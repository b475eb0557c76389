import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError, LIMITS, type Epoch, type GroupId, type JobId, type RoundId } from '@broomwagon/contracts';
import type { Operations } from './operations';
import { pagesOf } from './pages';

const POLL_MS = 100;
const DEADLINE_MS = 60_000;
const REASON = 'tokens are not in the payload store';

/**
 * Accepted groups have lost tokens: gives their round up, whose other groups go to the long-tail queue with all they
 * have and come back in the next round, and drops these, so that they may be submitted again. A trainer that dies
 * meanwhile leaves nothing that another one does not find.
 * @throws BroomwagonError PAYLOAD_NOT_FOUND when they are not forgotten until the deadline
 */
export async function makeGroupsAgain(
  operations: Operations,
  trainer: { job: JobId; trainerEpoch: Epoch },
  roundId: RoundId,
  groupIds: readonly GroupId[],
  signal?: AbortSignal,
): Promise<void> {
  const endsMs = performance.now() + DEADLINE_MS;
  const until = async (isDone: () => Promise<boolean>): Promise<void> => {
    while (!(await isDone())) {
      if (performance.now() > endsMs) {
        const message = `Tokens of ${groupIds.join(', ')} are missing, and the groups cannot be dropped`;
        throw new BroomwagonError('PAYLOAD_NOT_FOUND', message);
      }
      await delay(POLL_MS, undefined, { signal });
    }
  };
  await operations.call('round.cancel', { ...trainer, roundId, mode: 'requeue', reason: REASON });
  await until(async () => (await operations.call('round.status', { job: trainer.job, roundId })).settled);
  for (const page of pagesOf(groupIds, LIMITS.groupsPerSubmit)) {
    await operations.call('longtail.drop', { ...trainer, groupIds: page, reason: REASON });
    await until(async () => {
      const { unknown } = await operations.call('job.reconcile', { ...trainer, groupIds: page });
      return unknown.length === page.length;
    });
  }
}
