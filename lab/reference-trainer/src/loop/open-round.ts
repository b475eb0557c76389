import { isBroomwagonError, type Epoch, type RoundKind, type RoundPlan, type RoundStatus } from '@broomwagon/contracts';
import type { Operations } from './operations';
import type { TrainerLoopHooks, TrainerLoopSettings } from './trainer-loop.types';
import type { TrainerRecord } from './trainer-record';

/** The round that a trainer drives. */
export type CurrentRound = Pick<RoundStatus, 'roundId' | 'step' | 'kind' | 'neededGroups' | 'newGroups'> & {
  /** Planned new groups that are not submitted yet, by domain; unknown to a trainer that has taken the round over. */
  newByDomain?: Map<string, number>;
};

export interface OpenedRound {
  round: CurrentRound;
  trainerEpoch: Epoch;
}

interface Opener {
  settings: TrainerLoopSettings;
  hooks: TrainerLoopHooks;
  record: TrainerRecord;
  /** Epoch of the trainer; absent before the first round of the job. */
  trainerEpoch?: Epoch;
}

/** Maximum names tried for the round of a step: earlier rounds of the step were given up, also by other trainers. */
const MAX_ROUNDS = 100;

/**
 * Plans the next round and opens it; plans again when the plan is stale. Undefined: no group is left to train.
 * @throws BroomwagonError FENCED when another trainer took over
 */
export async function openNextRound(operations: Operations, opener: Opener): Promise<OpenedRound | undefined> {
  const { settings, record, trainerEpoch } = opener;
  const { job, groupsPerStep, policy } = settings;
  const remainingGroups = record.remaining;
  const remainingByDomain = policy.domainQuotas && record.remainingByDomain;
  for (;;) {
    const request = { job, groupsPerStep, remainingGroups, remainingByDomain, policy, trainerEpoch };
    const plan = await operations.call('round.next', request);
    if (plan.kind === 'done') return undefined;
    try {
      return await openRound(operations, plan as RoundPlan & { kind: RoundKind }, remainingGroups, opener);
    } catch (error) {
      if (!isBroomwagonError(error, 'PLAN_STALE')) throw error;
    }
  }
}

async function openRound(
  operations: Operations,
  plan: RoundPlan & { kind: RoundKind },
  remainingGroups: number,
  { settings, hooks, trainerEpoch }: Opener,
): Promise<OpenedRound> {
  const { job, policy } = settings;
  const { planId, step, kind, neededGroups, newGroups, takeGroups, newByDomain } = plan;
  const trainer = trainerEpoch === undefined ? undefined : { job, trainerEpoch };
  const weightVersion = (await hooks.setWeightVersion?.(step - 1, trainer)) ?? undefined;
  // Failed groups are replaced as long as the rest of the data set has another `neededGroups` groups. Near the end of
  // the data set, the step needs fewer groups instead.
  const shortfall = remainingGroups - newGroups >= neededGroups ? 'replace' : 'accept-fewer';
  const terms = { job, planId, step, kind, neededGroups, newGroups, takeGroups, weightVersion, trainerEpoch };
  for (let attempt = 1; ; attempt += 1) {
    const roundId = attempt === 1 ? `${job}-step-${step}` : `${job}-step-${step}-${attempt}`;
    try {
      const reply = await operations.call('round.open', { ...terms, roundId, policy: { ...policy, shortfall } });
      const byDomain = newByDomain && new Map(Object.entries(newByDomain));
      const round = { roundId, step, kind, neededGroups, newGroups, newByDomain: byDomain };
      return { round, trainerEpoch: reply.trainerEpoch };
    } catch (error) {
      // A round of this step was given up.
      if (!isBroomwagonError(error, 'ROUND_CANCELLED') || attempt === MAX_ROUNDS) throw error;
    }
  }
}
