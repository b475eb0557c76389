import type { Schemas } from '@broomwagon/admin-client';

type Frontier = Schemas['JobFrontierReply'];
/** Speed and costs of a step or a policy. */
type Cost = Pick<
  Frontier['whatIf'][number],
  'stepSeconds' | 'tokensPerSecond' | 'offPolicyShare' | 'lengthBias' | 'wasteShare'
>;

/** A point of the frontier: a step of the job, or a policy on its recorded samples. */
export interface Point extends Cost {
  name: string;
  kind: 'step' | 'own' | 'other';
  /** Whether another policy dominates this policy. */
  isDominated: boolean;
}

export function toPoints({ steps, whatIf }: Frontier): Point[] {
  const policies = whatIf.map((one) => ({
    ...one,
    name: one.policy === 'wait' || one.policy === 'auto' ? one.policy : `${one.policy} ${one.overProvision}`,
    kind: one.isOwn ? ('own' as const) : ('other' as const),
    isDominated: whatIf.some((other) => dominates(other, one)),
  }));
  const own = steps.map((one) => ({
    ...one,
    name: `step ${one.step}${one.kind === 'long' ? ', long' : ''}`,
    kind: 'step' as const,
    isDominated: false,
  }));
  return [...own, ...policies];
}

const computeBias = ({ lengthBias }: Cost): number => Math.abs(lengthBias - 1);

/** Whether `one` is nowhere worse and somewhere better than `other`, in speed, off-policy share, bias and waste. */
function dominates(one: Cost, other: Cost): boolean {
  const differences = [
    other.stepSeconds - one.stepSeconds,
    other.offPolicyShare - one.offPolicyShare,
    computeBias(other) - computeBias(one),
    other.wasteShare - one.wasteShare,
  ];
  return differences.every((difference) => difference >= 0) && differences.some((difference) => difference > 0);
}
