import type {
  AutoChoice,
  AutoRow,
  LedgerSummary,
  RebalancePolicy,
  TailPolicy,
  TailPolicyName,
} from '@broomwagon/contracts';
import type { StepReport } from '../../../reference-trainer/src/loop/step-report';
import type { ControlCost } from './control-cost';

/** Counts of a job at its end, in samples, and the checker's counts of faults in the results file. */
export interface Totals {
  submitted: number;
  accepted: number;
  trained: number;
  unfinished: number;
  failed: number;
  dropped: number;
  lost: number;
  duplicated: number;
  /** Result lines that are of unknown prompts, malformed or inconsistent. */
  faulty: number;
}

/** Counts of the rebalancer in a run. */
export interface RebalanceReport {
  mode: 'off' | 'dry-run' | 'on';
  policy: RebalancePolicy;
  /** Number of plans with moves, and of moves that were sent. */
  plans: number;
  moves: number;
}

/** Costs of the policy over all steps, from the ledger of the job. */
export type PolicyCost = Pick<LedgerSummary, 'lengthBias' | 'offPolicyShare' | 'batchVariation' | 'waste'>;

/** Choices of `auto` in a run. */
export interface AutoReport {
  /** Choices by step. `broken`: bounds that were known to be broken before the step; absent if none was. */
  choices: ({ step: number; overProvision: number } & Pick<AutoChoice, 'policy' | 'reason' | 'broken'>)[];
  /** Predictions before the last round; empty if `auto` never had enough measurements. */
  frontier: AutoRow[];
}

/** Report of one run of the data set. */
export interface RunReport {
  policy: TailPolicyName;
  overProvision: number;
  /** Whole policy of the rounds. */
  parameters: TailPolicy;
  /** Report of the rebalancer; null if the options do not turn it on. */
  rebalance: RebalanceReport | null;
  wallSeconds: number;
  /** Sum over the steps of the time that the busiest engine worked, simulated seconds; null for real engines. */
  engineSeconds: number | null;
  /** Time of the last tenth of the requests of each round / `wallSeconds`, both summed over the steps; 0 to 1. */
  tailShare: number;
  cost: PolicyCost;
  /** CPU time of all processes but the engines; null where the system does not tell. */
  control: ControlCost | null;
  /** Samples of other lengths than `--lengths`; null where it does not set the lengths of real engines. */
  otherLengths: number | null;
  /** Choices of `auto`; null under other policies. */
  auto: AutoReport | null;
  steps: StepReport[];
  totals: Totals;
}

/** Content of the file of `--report`. The run of the chosen policy is at the top level. */
export interface Report extends RunReport {
  prompts: number;
  groupsPerStep: number;
  samplesPerGroup: number;
  engines: { count: number; simulated: boolean; speed: number | null };
  /**
   * Run of the same prompts under the policy `wait`; with a rebalance, under the same policy without the rebalance.
   * Null if there was no such run.
   */
  baseline: RunReport | null;
  /** Runs of the same prompts under further policies (`--compare`). */
  compared: RunReport[];
  /** Wall time of the baseline / wall time, whole runs compared; null without a baseline. */
  speedup: number | null;
  /**
   * `engineSeconds` of the baseline / `engineSeconds` of the run: without the time in which engines wait for services,
   * which depends on this machine. Null without a baseline, and for real engines.
   */
  simulatedSpeedup: number | null;
  /** Share by which the simulated clocks fell behind; null for real engines. */
  clockLagShare: number | null;
  /** False if a clock lagged by more than 5 % or was restarted, or if samples were lost, duplicated or faulty. */
  valid: boolean;
  notes: string[];
}
