import type { RoundPlan, TailPolicy } from '@broomwagon/contracts';

/** What a plan depends on in the state of a job. */
export interface PlanSnapshot {
  /** Rounds closed. */
  stepsTrained: number;
  /** Groups in the long-tail queue. */
  longtailGroups: number;
  /** Groups of a completed round on their way into the queue. */
  settlingGroups: number;
}

/** What the trainer brings. */
export interface PlanInput {
  /** Groups one training step consumes, at least 1. */
  groupsPerStep: number;
  /** Groups of the data set that were never submitted. */
  remainingGroups: number;
  policy: Pick<TailPolicy, 'name' | 'overProvision'>;
}

// 1.1 * 10 is a little more than 11 in binary; that is no reason to launch a twelfth group.
const ROUNDING = 1e-9;

/**
 * Plans the next round so that every step trains exactly `min(groupsPerStep, what is left)` groups: with N groups in
 * all, the data set takes exactly ceil(N / groupsPerStep) steps, whatever is cut on the way.
 *
 * A full step in the long-tail queue makes a long round, which takes that step and launches nothing new (RollPacker).
 * Else a short round launches overProvision times what it needs, new groups first, and fills up from the queue at the
 * end of the data. `wait` never launches more than it needs.
 */
export function planRound(snapshot: PlanSnapshot, input: PlanInput): RoundPlan {
  const step = snapshot.stepsTrained + 1;
  const queued = snapshot.longtailGroups + snapshot.settlingGroups;
  const untrained = queued + input.remainingGroups;
  const neededGroups = Math.min(input.groupsPerStep, untrained);
  if (untrained === 0) return plan({ step, kind: 'done', neededGroups: 0, newGroups: 0, takeGroups: 0 });
  if (queued >= input.groupsPerStep || input.remainingGroups === 0) {
    return plan({ step, kind: 'long', neededGroups, newGroups: 0, takeGroups: neededGroups });
  }
  const overProvision = input.policy.name === 'wait' ? 1 : input.policy.overProvision;
  const launched = Math.min(untrained, Math.ceil(overProvision * neededGroups - ROUNDING));
  const newGroups = Math.min(input.remainingGroups, launched);
  return plan({ step, kind: 'short', neededGroups, newGroups, takeGroups: launched - newGroups });
}

/** The planId names the whole plan: `round.open` checks each part of it against the state. */
function plan(parts: Omit<RoundPlan, 'planId'>): RoundPlan {
  const { step, kind, neededGroups, newGroups, takeGroups } = parts;
  return { planId: `${step}-${kind}-${neededGroups}-${newGroups}-${takeGroups}`, ...parts };
}
