import type {
  AutoChoice,
  AutoRow,
  LedgerSummary,
  RebalancePolicy,
  TailPolicy,
  TailPolicyName,
} from '@broomwagon/contracts';
import type { StepReport } from '../../../../apps/trainer/src/loop/step-report';

/** The counts of a job at its end, in samples, and the checker's verdict on the results file. */
export interface Totals {
  submitted: number;
  accepted: number;
  trained: number;
  unfinished: number;
  failed: number;
  dropped: number;
  lost: number;
  duplicated: number;
  /** Result lines of unknown prompts, malformed, or that contradict themselves. */
  faulty: number;
}

/** What the rebalancer did in a run. */
export interface RebalanceReport {
  mode: 'off' | 'dry-run' | 'on';
  policy: RebalancePolicy;
  /** Plans with moves, and the moves that were sent. */
  plans: number;
  moves: number;
}

/** What the policy cost over all steps, from the ledger of the job. */
export type PolicyCost = Pick<LedgerSummary, 'lengthBias' | 'offPolicyShare' | 'batchVariation' | 'waste'>;

/** What `auto` chose in a run. */
export interface AutoReport {
  /** By step. `broken`: bounds that were known to be broken before it; absent if none was. */
  choices: ({ step: number; overProvision: number } & Pick<AutoChoice, 'policy' | 'reason' | 'broken'>)[];
  /** What it predicted before the last round; empty if it never knew enough. */
  frontier: AutoRow[];
}

/** One way through the data set. */
export interface RunReport {
  policy: TailPolicyName;
  overProvision: number;
  /** The whole policy, as the rounds had it. */
  parameters: TailPolicy;
  /** Null when the options ask for none. */
  rebalance: RebalanceReport | null;
  wallSeconds: number;
  /** Sum of the steps: time that the busiest engine worked, simulated seconds; null for real engines. */
  engineSeconds: number | null;
  /** Time of the last tenth of the requests of each round / `wallSeconds`, both in sum over the steps; 0 to 1. */
  tailShare: number;
  cost: PolicyCost;
  /** Null under other policies. */
  auto: AutoReport | null;
  steps: StepReport[];
  totals: Totals;
}

/** The file of `--report`. Everything about the chosen policy stands at the top level. */
export interface Report extends RunReport {
  prompts: number;
  groupsPerStep: number;
  samplesPerGroup: number;
  engines: { count: number; simulated: boolean; speed: number | null };
  /**
   * The same prompts under the policy `wait`; with a rebalance, under the same policy without it. Null when it was not
   * run.
   */
  baseline: RunReport | null;
  /** Wall time of the baseline / wall time, whole runs compared; null without a baseline. */
  speedup: number | null;
  /**
   * `engineSeconds` of the baseline / those of the run: time in which engines wait for services, which depends on this
   * machine, does not count. Null without a baseline, and for real engines.
   */
  simulatedSpeedup: number | null;
  /** How far the simulated clocks fell behind, as a share; null for real engines. */
  clockLagShare: number | null;
  /** False when a clock lagged by more than 5 % or was restarted, or something was lost or duplicated. */
  valid: boolean;
  notes: string[];
}
