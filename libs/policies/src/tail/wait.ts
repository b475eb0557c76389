import { reservesWithQuotas, type TailRule } from './tail-rule';

/** Plain synchronous rollout: launches the groups that it needs and waits for all of them. */
export const wait: TailRule = {
  onCut: 'keep',
  reservesTaken: reservesWithQuotas,
  form: ({ needed, groupsPerStep, queued, urgent, remaining }) =>
    queued >= groupsPerStep || remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: urgent, launch: needed },
};
