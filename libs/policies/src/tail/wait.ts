import { reservesWithQuotas, type TailRule } from './tail-rule';

/** Plain synchronous rollout: launches what it needs and waits for all of it. */
export const wait: TailRule = {
  onCut: 'keep',
  reservesTaken: reservesWithQuotas,
  form: ({ needed, groupsPerStep, queued, urgent, remaining }) =>
    queued >= groupsPerStep || remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: urgent, launch: needed },
};
