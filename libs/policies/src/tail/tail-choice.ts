import type { AutoRow, TailChoice, TailPolicy } from '@broomwagon/contracts';
import { chooseOverProvision, mergeLengths, type GroupLengths, type RoundTime } from '../over-provision';
import { nextDrip, type DripState, type StepPace } from './drip-count';
import type { FixedPolicy, FixedPolicyName } from './tail-rule';

/** Number of last steps that an adaptive policy uses. */
export const HISTORY_STEPS = 8;

/** Record of a closed round, for the choices of later rounds. */
export interface StepRecord extends StepPace, RoundTime {
  acceptedGroups: number;
  /** Tokens of all samples of the accepted groups. */
  acceptedTokens: number;
  /**
   * Lengths of groups that were first submitted in this step, by domain ('' = none). A later step that ends such a
   * group corrects these counts.
   */
  lengths: Record<string, GroupLengths>;
  newGroups?: number;
  /** Accepted groups in the form of `recordGroup`; only for rounds under `auto`. */
  recorded?: string;
}
/** State of adaptive policies, from step to step. */
export interface TailControl {
  /** Last over-provision by domain ('' = all domains without a quota). */
  overProvision?: Record<string, number>;
  drip?: DripState;
  auto?: AutoState;
}
export interface AutoState {
  name: FixedPolicyName;
  overProvision: number;
  /** Highest measured cost / predicted cost, of choices under which the ledger broke a bound. */
  factors?: CostFactors;
  /** Measured waste where 0 was predicted, divided by (over-provision - 1). */
  leastWaste?: number;
  /** True if this choice was a step back, so that the ledger has the costs of the choice before. */
  isBack?: boolean;
}
export type MeasuredCosts = Pick<AutoRow, 'offPolicyShare' | 'lengthBias' | 'wasteShare'>;
export type CostFactors = Record<keyof MeasuredCosts, number>;
export interface ControlInput {
  control?: TailControl;
  /** The last {@link HISTORY_STEPS} closed rounds, oldest first. */
  history?: readonly StepRecord[];
  /** Tokens that the KV caches of all engines hold, as they report; 0 or absent: not known. */
  fleetKvTokens?: number;
  /** Measured costs in the ledger of the job, for bounds of `auto`. */
  measured?: MeasuredCosts;
}

/** Returns the choice of an adaptive policy for the next round; undefined for a policy without adaptive fields. */
export function chooseTail(
  policy: FixedPolicy,
  groupsPerStep: number,
  { control = {}, history = [], fleetKvTokens = 0 }: ControlInput,
): { choice: TailChoice; control: TailControl } | undefined {
  const isOverProvisionAdaptive = policy.overProvisionMode === 'adaptive';
  const isDripAdaptive = policy.dripMode === 'adaptive';
  if (!isOverProvisionAdaptive && !isDripAdaptive) return undefined;
  const next: TailControl = {};
  const choice: TailChoice = { overProvision: policy.overProvision };
  if (isOverProvisionAdaptive) {
    const quotas = placesByDomain(policy, groupsPerStep);
    choice.domains = Object.fromEntries(
      Object.entries(quotas).map(([domain, neededGroups]) => [
        domain,
        chooseOverProvision({
          neededGroups,
          lengths: mergeLengths(history.flatMap(({ lengths }) => listLengths(lengths, domain, quotas))),
          rounds: history,
          current: new Map(Object.entries(control.overProvision ?? {})).get(domain) ?? policy.overProvision,
          tokensPerGroup: meanGroupTokens(history),
          fleetKvTokens: ((policy.fleetKvTokens ?? fleetKvTokens) * neededGroups) / groupsPerStep,
        }),
      ]),
    );
    const chosen = Object.entries(choice.domains);
    next.overProvision = Object.fromEntries(chosen.map(([domain, { overProvision }]) => [domain, overProvision]));
    choice.overProvision =
      chosen.reduce((sum, [domain, { overProvision }]) => sum + overProvision * quotas[domain]!, 0) / groupsPerStep;
  }
  if (isDripAdaptive) {
    const { state, why } = nextDrip(control.drip, history.at(-1), groupsPerStep, policy.dripGroups);
    next.drip = state;
    choice.dripGroups = state.groups;
    choice.drip = why;
  }
  return { choice, control: next };
}

/** Returns the mean tokens of an accepted group over the last steps; 0 = no group yet. */
export function meanGroupTokens(history: readonly StepRecord[]): number {
  const groups = history.reduce((sum, step) => sum + step.acceptedGroups, 0);
  return groups === 0 ? 0 : history.reduce((sum, step) => sum + step.acceptedTokens, 0) / groups;
}

/** Returns the places of a step by domain; '' has the places of all domains without a quota. */
function placesByDomain({ domainQuotas = {} }: TailPolicy, groupsPerStep: number): Record<string, number> {
  const rest = groupsPerStep - Object.values(domainQuotas).reduce((sum, quota) => sum + quota, 0);
  return rest > 0 ? { ...domainQuotas, '': rest } : { ...domainQuotas };
}

function listLengths(
  lengths: Record<string, GroupLengths>,
  domain: string,
  quotas: Record<string, number>,
): GroupLengths[] {
  if (domain !== '') return Object.hasOwn(lengths, domain) ? [lengths[domain]!] : [];
  return Object.entries(lengths).flatMap(([name, part]) => (name !== '' && Object.hasOwn(quotas, name) ? [] : [part]));
}
