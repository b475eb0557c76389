import type { AutoChoice, RoundKind, TailPolicy } from '@broomwagon/contracts';
import type { LedgerCounters } from '@broomwagon/policies';
import type { Router } from '../routing/router';
import type { FleetOptions } from '../simulation/simulated-fleet';
import type { Workload } from '../workload/workload';
import type { Claim, Dispatcher } from './dispatcher';
import type { KvTransfer, Placement } from './placement';
import type { Sample } from './sample';

export interface RolloutOptions {
  workload: Workload;
  fleet: FleetOptions;
  policy: TailPolicy;
  /** Number of groups of one step, and below of samples of one group. */
  groupsPerStep: number;
  samples: number;
  /** Longest response, tokens, for orders of dispatch by length. */
  maxTokens?: number;
  /** Number of groups of the whole data set. */
  groups: number;
  router: Router;
  /** Default: {@link ImmediateDispatcher}. */
  dispatcher?: (placement: Placement, claim: Claim) => Dispatcher;
  /** Creates the mover of requests within rounds; default: none. */
  mover?: (placement: Placement, samplesOf: () => Iterable<Sample>) => Mover;
  transfer?: KvTransfer;
  /** Seconds between two rounds: cut, training call, new weights; part of every step. */
  overheadSeconds: number;
}

/** Moves requests between servers while a round runs. */
export interface Mover {
  roundBegins(): void;
  roundEnds(): void;
}

/** Outcome of one step. Times are virtual seconds; only `seconds` includes the overhead. */
export interface StepOutcome {
  step: number;
  kind: RoundKind;
  seconds: number;
  /** Time from the end of nine tenths of the step's requests to the end of the last request. */
  tailSeconds: number;
  /** Time from the end of the last sample on the first idle server to the end of the step. */
  gapSeconds: number;
  /** Whether new groups were left to launch after the step. */
  isWithinData: boolean;
  launchedGroups: number;
  takenGroups: number;
  meanTokens: number;
  trainedTokens: number;
  /** Number of times that a request lost its KV because the cache was full. */
  preemptions: number;
  /** Choice of the policy `auto`. */
  choice?: AutoChoice;
}

export interface RolloutOutcome {
  steps: StepOutcome[];
  ledger: LedgerCounters;
  /** Counts over the first draws of all launched samples, whose mean length an unbiased step has. */
  population: { samples: number; tokens: number; atCap: number };
  /** Virtual time of the rollout, overheads included. */
  seconds: number;
  /** Virtual time without overheads. */
  rolloutSeconds: number;
  /** Engine seconds with something running / (servers x rolloutSeconds). */
  busyShare: number;
  preemptions: number;
  prefillTokens: number;
  moves: number;
  movedTokens: number;
}
