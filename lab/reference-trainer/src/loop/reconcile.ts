import { randomUUID } from 'node:crypto';
import {
  isBroomwagonError,
  LIMITS,
  type JobId,
  type ReconcileJobReply,
  type ReconcileJobRequest,
  type RoundStatus,
} from '@broomwagon/contracts';
import type { Operations } from './operations';
import { splitPages } from './pages';
import type { TrainerRecord } from './trainer-record';

/** Result of a reconciliation. */
export interface Reconciled {
  /** Epoch of the trainer; absent if Redis has lost the job. */
  trainerEpoch?: ReconcileJobReply['trainerEpoch'];
  /** The round that is not closed, if any; its results must be read from their beginning. */
  round?: RoundStatus;
  /** Steps that Redis had lost and counts as trained now. */
  lostSteps: number[];
  /** Groups that Redis had lost: they are submitted again. */
  lostGroups: number;
}

/**
 * Takes the job over, reports the trained steps that Redis has lost, one after the other, and asks which groups are
 * unknown to Redis. Safe to repeat.
 * @throws BroomwagonError GENERATION_CHANGED when Redis was set back once more meanwhile
 */
export async function reconcile(operations: Operations, job: JobId, record: TrainerRecord): Promise<Reconciled> {
  operations.acceptGeneration();
  const takeoverId = randomUUID();
  const found = await operations.call('round.takeover', { job, takeoverId }).catch((error: unknown) => {
    if (isBroomwagonError(error, 'JOB_NOT_FOUND')) return undefined;
    throw error;
  });
  const known = found?.stepsTrained ?? 0;
  let trainerEpoch = found?.trainerEpoch;
  let openRoundId = found?.round?.roundId;
  const say = async (
    body: Omit<ReconcileJobRequest, 'job' | 'trainerEpoch' | 'takeoverId'>,
  ): Promise<ReconcileJobReply> => {
    const reply = await operations.call('job.reconcile', { job, trainerEpoch, takeoverId, ...body });
    ({ trainerEpoch, openRoundId } = reply);
    return reply;
  };

  const lost = record.trainedAfter(known);
  for (const [step, groups] of lost) {
    const pages = splitPages(groups, LIMITS.groupsPerReconcile);
    for (const [index, page] of pages.entries()) {
      await say({ step, groups: page, isLast: index === pages.length - 1 });
    }
  }
  let lostGroups = 0;
  for (const page of splitPages(record.openAfter(known), LIMITS.groupsPerReconcile)) {
    const unknown = trainerEpoch === undefined ? page : (await say({ groupIds: page })).unknown;
    lostGroups += record.forget(unknown);
    record.found(page.filter((groupId) => !unknown.includes(groupId)));
  }
  const round =
    openRoundId === undefined ? undefined : await operations.call('round.status', { job, roundId: openRoundId });
  return { trainerEpoch, round, lostSteps: lost.map(([step]) => step), lostGroups };
}
