import { type Formation, reservesWithQuotas, type Situation, type TailRule } from './tail-rule';

/** The long tail in separate steps: a long round as soon as the queue holds a whole step, else only new groups. */
function form({ needed, groupsPerStep, queued, urgent, remaining, launched }: Situation): Formation {
  if (queued >= groupsPerStep || remaining === 0) return { kind: 'long', take: needed, launch: needed };
  return { kind: 'short', take: urgent, launch: launched };
}

/** RollPacker: cut groups are generated again under the weights of their long round. On-policy, biased. */
export const regenerate: TailRule = { onCut: 'discard', reservesTaken: reservesWithQuotas, form };

/**
 * Rounds as under {@link regenerate}, but nothing is thrown away: a cut group continues. Unbiased, some tokens
 * off-policy.
 */
export const resume: TailRule = { onCut: 'keep', reservesTaken: reservesWithQuotas, form };
