import { LIMITS, type RoundPlan } from '@broomwagon/contracts';
import { chooseTail, type ControlInput, type FixedPolicy, sharePlaces, TAIL_RULES } from '../tail';

/** State of a job that a plan depends on. */
export interface PlanProgress extends ControlInput {
  /** Closed rounds. */
  stepsTrained: number;
  longtailGroups: number;
  /** Cut groups that are not in the queue yet. */
  settlingGroups: number;
  /** Groups of the queue with all their samples. `pinnedGroups`: groups that a bound pins to the next step. */
  finishedGroups?: number;
  pinnedGroups?: number;
}

/** Inputs of a plan that the trainer provides. */
export interface FormInput {
  /** Groups that one step trains, at least 1. */
  groupsPerStep: number;
  /** Groups of the data set that were never submitted. */
  remainingGroups: number;
  /** Remaining groups by domain; with `domainQuotas`. */
  remainingByDomain?: Readonly<Record<string, number>>;
  policy: FixedPolicy;
}

// In binary, 1.1 * 10 is a little more than 11; the rounding avoids a twelfth group.
const ROUNDING = 1e-9;
const times = (factor: number, groups: number): number => Math.ceil(factor * groups - ROUNDING);

/**
 * Plans the next round. Every step trains exactly `min(groupsPerStep, untrained groups)` groups, so a data set of N
 * groups takes ceil(N / groupsPerStep) steps under every policy. The policy forms the round. This function adds the
 * rules for all policies: urgent groups (finished, or pinned by a bound) are taken, `maxLongtailShare` holds while
 * there are new groups, and groups of the queue fill the round at the end of the data.
 */
export function formRound(progress: PlanProgress, input: FormInput): RoundPlan {
  const { policy, groupsPerStep, remainingGroups: remaining } = input;
  const step = progress.stepsTrained + 1;
  const queued = progress.longtailGroups + progress.settlingGroups;
  const untrained = queued + remaining;
  const needed = Math.min(groupsPerStep, untrained);
  if (untrained === 0) return plan({ step, kind: 'done', neededGroups: 0, newGroups: 0, takeGroups: 0 });

  const choice = chooseTail(policy, groupsPerStep, progress)?.choice;
  const overProvision = policy.name === 'wait' ? 1 : (choice?.overProvision ?? policy.overProvision);
  const launched = Math.min(untrained, LIMITS.groupsPerRound, times(overProvision, needed));
  const urgent = Math.min(needed, queued, (progress.finishedGroups ?? 0) + (progress.pinnedGroups ?? 0));
  const dripGroups = Math.min(needed, choice?.dripGroups ?? policy.dripGroups ?? Math.max(1, launched - needed));
  const situation = { needed, groupsPerStep, queued, urgent, remaining, launched, dripGroups };
  const { kind, take: wanted, launch } = TAIL_RULES[policy.name].form(situation);

  const most = Math.max(Math.floor((policy.maxLongtailShare ?? 1) * needed), needed - remaining);
  let take = Math.max(Math.min(wanted, queued, most, launch), needed - remaining);
  let newGroups = Math.min(remaining, launch - take);
  let newByDomain: Record<string, number> | undefined;
  if (policy.domainQuotas !== undefined && newGroups > 0) {
    // Groups of the queue without reserved places compete with new groups for places.
    const places = TAIL_RULES[policy.name].reservesTaken(policy)
      ? needed - take
      : Math.max(needed - take, Math.floor(newGroups / overProvision + ROUNDING));
    // The groups of each domain are rounded up, by less than one.
    const room = LIMITS.groupsPerRound - take - Object.keys(policy.domainQuotas).length - 1;
    newByDomain = newOfDomains(input, places, newGroups, (domain) =>
      Math.min(choice?.domains?.[domain]?.overProvision ?? overProvision, Math.max(1, room / Math.max(1, places))),
    );
    newGroups = Object.values(newByDomain).reduce((sum, count) => sum + count, 0);
  }
  if (newGroups === remaining) take = Math.max(take, Math.min(queued, launch - newGroups, most));
  return plan({ step, kind, neededGroups: needed, newGroups, takeGroups: take }, { newByDomain, choice });
}

/**
 * Returns the new groups of each domain: over-provision x places of the domain. When a domain has too few groups, the
 * domains with the most remaining groups fill its places.
 */
function newOfDomains(
  { policy, groupsPerStep, remainingByDomain = {} }: FormInput,
  places: number,
  launch: number,
  overProvisionOf: (domain: string) => number,
): Record<string, number> {
  const shares = sharePlaces(policy.domainQuotas!, groupsPerStep, places);
  const left = new Map(Object.entries(remainingByDomain));
  const given = new Map<string, number>();
  const give = (domain: string, count: number): number => {
    const part = Math.max(0, Math.min(count, left.get(domain) ?? 0));
    if (part > 0) {
      given.set(domain, (given.get(domain) ?? 0) + part);
      left.set(domain, left.get(domain)! - part);
    }
    return part;
  };
  const mostLeftFirst = (domains: readonly string[]): string[] =>
    domains.toSorted((a, b) => left.get(b)! - left.get(a)! || (a < b ? -1 : 1));
  let open = places;
  for (const [domain, share] of Object.entries(shares)) {
    open -= share;
    give(domain, times(overProvisionOf(domain), share));
  }
  const others = mostLeftFirst([...left.keys()].filter((domain) => !Object.hasOwn(shares, domain)));
  let forOthers = times(overProvisionOf(''), open);
  for (const domain of others) forOthers -= give(domain, forOthers);
  let missing = Math.min(places, launch) - [...given.values()].reduce((sum, count) => sum + count, 0);
  for (const domain of mostLeftFirst([...left.keys()])) missing -= give(domain, missing);
  return Object.fromEntries(given);
}

/** Adds a planId that names all parts of the plan. `round.open` checks each part against the state. */
function plan(
  parts: Omit<RoundPlan, 'planId' | 'choice' | 'newByDomain'>,
  { newByDomain, choice }: Pick<RoundPlan, 'choice' | 'newByDomain'> = {},
): RoundPlan {
  const { step, kind, neededGroups, newGroups, takeGroups } = parts;
  return {
    planId: `${step}-${kind}-${neededGroups}-${newGroups}-${takeGroups}`,
    ...parts,
    ...(newByDomain === undefined ? {} : { newByDomain }),
    ...(choice === undefined ? {} : { choice }),
  };
}
