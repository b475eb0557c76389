import type { PoolSettings, TailPolicy } from '@broomwagon/contracts';
import type { LedgerSummary } from '@broomwagon/contracts';
import { summariseLedger } from '@broomwagon/policies';
import { type LengthDistribution } from '@broomwagon/models';
import { highest } from '../highest';
import { STEP_OVERHEAD_SECONDS, type Setup } from '../parameters';
import { Rollout } from '../rollout/rollout';
import type { RolloutOptions, RolloutOutcome } from '../rollout/rollout.types';
import { IndexedRouter } from '../routing/indexed-router';
import { ProductionRouter } from '../routing/production-router';
import { generatedWorkload, type Workload } from '../workload/workload';

/** Number of servers above which the default policy uses an index. */
const MANY_SERVERS = 32;

export interface RunChoices extends Partial<Pick<RolloutOptions, 'router' | 'dispatcher' | 'mover'>> {
  policy?: TailPolicy;
  routing?: PoolSettings;
  /** Training steps of the whole data set. */
  steps: number;
  /** Groups of the data set, if it is not a whole number of steps. */
  groups?: number;
  /** Default {@link STEP_OVERHEAD_SECONDS}. */
  overheadSeconds?: number;
  seed: number;
  lengths?: LengthDistribution;
  workload?: Workload;
}

/** Result of a run, as in the tables. Times in seconds, shares 0 to 1. */
export interface RunResult {
  outcome: RolloutOutcome;
  ledger: LedgerSummary;
  /** Mean duration of a step, as long as there is new data. */
  stepSeconds: number;
  worstStepSeconds: number;
  idleShare: number;
  /** Time of the last tenth of the requests / time of the step; mean. */
  tailShare: number;
  tailSeconds: number;
  /** Time from the first server's end to the last server's end / time of the step; mean. */
  gapShare: number;
  /** True bias: trained mean length / mean of the whole data set. */
  lengthBias: number;
  capBias: number;
  /** Standard deviation / mean of the steps' mean lengths, as long as there is new data. */
  batchVariation: number;
  tokensPerSecond: number;
}

export const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };

/** Rolls out a data set of `steps` training steps with a setup. */
export function runSetup(setup: Setup, choices: RunChoices): RunResult {
  const { servers, engine: parameters, lockstep, groupsPerStep, samples, promptTokens, capTokens, transfer } = setup;
  const lengths = { ...(choices.lengths ?? setup.lengths), capTokens };
  const workload = choices.workload ?? generatedWorkload(setup.model, lengths, choices.seed, promptTokens);
  const outcome = new Rollout({
    workload,
    fleet: { servers, parameters, lockstep },
    policy: choices.policy ?? WAIT,
    groupsPerStep,
    samples,
    maxTokens: capTokens,
    groups: choices.groups ?? groupsPerStep * choices.steps,
    router: choices.router ?? defaultRouter(servers, choices.routing),
    dispatcher: choices.dispatcher,
    mover: choices.mover,
    transfer,
    overheadSeconds: choices.overheadSeconds ?? STEP_OVERHEAD_SECONDS,
  }).run();
  return toRunResult(outcome);
}

function defaultRouter(servers: number, routing: PoolSettings | undefined) {
  if (routing === undefined && servers > MANY_SERVERS) return new IndexedRouter(servers);
  return new ProductionRouter(servers, routing);
}

function toRunResult(outcome: RolloutOutcome): RunResult {
  const ledger = summariseLedger(outcome.ledger);
  const within = outcome.steps.filter(({ isWithinData }) => isWithinData);
  const steps = within.length > 0 ? within : outcome.steps;
  const { population } = outcome;
  const tokens = outcome.steps.reduce((sum, { trainedTokens }) => sum + trainedTokens, 0);
  const seconds = mean(steps.map((step) => step.seconds));
  return {
    outcome,
    ledger,
    stepSeconds: seconds,
    worstStepSeconds: highest(steps.map((step) => step.seconds)),
    idleShare: 1 - outcome.busyShare,
    tailShare: mean(steps.map((step) => step.tailSeconds / step.seconds)),
    tailSeconds: mean(steps.map((step) => step.tailSeconds)),
    gapShare: mean(steps.map((step) => step.gapSeconds / step.seconds)),
    lengthBias: tokens / ledger.trained.samples / (population.tokens / population.samples),
    capBias: population.atCap === 0 ? 1 : ledger.trained.capShare / (population.atCap / population.samples),
    batchVariation: variation(steps.map(({ meanTokens }) => meanTokens)),
    tokensPerSecond: tokens / outcome.seconds,
  };
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function variation(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2))) / middle;
}
