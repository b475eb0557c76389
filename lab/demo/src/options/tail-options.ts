import { CUT_SEMANTICS, LIMITS, type TailPolicy } from '@broomwagon/contracts';
import { findPolicyFault } from '@broomwagon/policies';
import { Option, type Command } from 'commander';
import { decimal, integer } from './numbers';
import type { TailParameters, TrainerOptions } from './trainer-options';
import { UsageError } from '../../../reference-trainer/src/usage-error';

/** Option of each parameter, as messages name it. */
const FLAGS: Partial<Record<keyof TailPolicy, string>> = {
  overProvisionMode: '--adaptive-over-provision',
  sampleOverProvision: '--sample-over-provision',
  onCut: '--on-cut',
  dripGroups: '--drip-groups',
  dripMode: '--adaptive-drip',
  concurrency: '--concurrency',
  maxCuts: '--max-cuts',
  maxAgeSteps: '--max-age-steps',
  maxVersionSpan: '--max-version-span',
  maxOffPolicyShare: '--max-off-policy-share',
  maxLengthBias: '--max-length-bias',
  maxWaste: '--max-waste',
  maxLongtailShare: '--max-longtail-share',
  deadlineMs: '--deadline-ms',
};

export function addTailOptions(command: Command): Command {
  return command
    .option('--adaptive-over-provision', 'start with --over-provision, then adapt to the lengths of the last steps')
    .option(
      '--sample-over-provision <x>',
      'launched samples / samples of a group; the first to finish count',
      decimal(1, 16),
    )
    .addOption(
      new Option('--on-cut <what>', 'what happens to cut tokens (default: that of the policy)').choices(CUT_SEMANTICS),
    )
    .option(
      '--drip-groups <n>',
      'drip: groups each round takes from the long-tail queue',
      integer(1, LIMITS.groupsPerRound),
    )
    .option('--adaptive-drip', 'drip: adapt --drip-groups to the pace of the new groups')
    .option(
      '--concurrency <n>',
      'fixed-concurrency: requests in flight (default: the requests of one step)',
      integer(1, 1_000_000),
    )
    .option('--max-cuts <n>', 'a group with this many cuts is taken next and not cut again', integer(1, 1_000))
    .option(
      '--max-age-steps <n>',
      'a group is trained at most this many steps after its first step',
      integer(1, 1_000_000),
    )
    .option('--max-version-span <n>', 'maximum weight versions in one group', integer(0, 1_000_000))
    .option('--max-off-policy-share <x>', 'maximum share of tokens of older weights in a batch', decimal(0, 1))
    .option('--max-length-bias <x>', 'auto: maximum bias of the mean length, as a share (default: none)', decimal(0, 1))
    .option('--max-waste <x>', 'auto: maximum share of tokens that are thrown away', decimal(0, 1))
    .option('--max-longtail-share <x>', 'maximum share of groups of the long-tail queue in a batch', decimal(0, 1))
    .option('--deadline-ms <n>', 'a round completes after this time with its finished groups', integer(1, 2 ** 31 - 1));
}

/** Separates the parameters of the tail policy from the other options. */
export function takeTail(given: Record<string, unknown>): { tail: TailParameters; rest: Record<string, unknown> } {
  const { adaptiveOverProvision, adaptiveDrip, ...rest } = given;
  const tail: Record<string, unknown> = {
    ...(adaptiveOverProvision === true ? { overProvisionMode: 'adaptive' } : {}),
    ...(adaptiveDrip === true ? { dripMode: 'adaptive' } : {}),
  };
  for (const field of Object.keys(FLAGS)) {
    if (rest[field] !== undefined) tail[field] = rest[field];
    delete rest[field];
  }
  return { tail, rest };
}

/** A run of the data set under a tail policy. */
export interface PlannedRun {
  policy: TailPolicy;
  rebalance: TrainerOptions['rebalance'];
  /** End of the name of its job; empty for the run of the options themselves. */
  suffix: string;
}

/** The run of the options, then the runs to compare with; the policies of these have no other parameters. */
export function planRuns(options: TrainerOptions): PlannedRun[] {
  const policy = toTailPolicy(options);
  const { rebalance } = options;
  const runs: PlannedRun[] = [{ policy, rebalance, suffix: '' }];
  // The rest of a continued job cannot be compared with a whole run.
  if (!options.baseline || options.continue) return runs;
  if (rebalance !== 'off') return [...runs, { policy, rebalance: 'off', suffix: '-off' }];
  const others = options.compare.filter((name) => name !== policy.name);
  return [
    ...runs,
    ...others.map((tailPolicy): PlannedRun => ({
      policy: toTailPolicy({ ...options, tailPolicy, tail: {} }),
      rebalance,
      suffix: `-${tailPolicy}`,
    })),
  ];
}

/** Returns the tail policy of the options. */
export function toTailPolicy({ tailPolicy: name, overProvision, tail, groups, samples }: TailChoices): TailPolicy {
  const concurrency = name === 'fixed-concurrency' ? { concurrency: groups * samples } : {};
  if (name === 'auto') return { name, ...tail };
  return { name, overProvision: name === 'wait' ? 1 : overProvision, ...concurrency, ...tail };
}
type TailChoices = Pick<TrainerOptions, 'tailPolicy' | 'overProvision' | 'tail' | 'groups' | 'samples'>;

/** @throws UsageError if the policy is invalid, with the name of the option */
export function checkTail(options: TailChoices): void {
  const fault = findPolicyFault(toTailPolicy(options), options.groups);
  if (fault !== undefined) throw new UsageError(`${FLAGS[fault.field] ?? fault.field} ${fault.reason} (see --help)`);
}
