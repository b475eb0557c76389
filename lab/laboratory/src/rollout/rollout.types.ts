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
  /** Groups of one step, and samples of one group. */
  groupsPerStep: number;
  samples: number;
  /** Longest response, tokens, for orders of dispatch by length. */
  maxTokens?: number;
  /** Groups of the whole data set. */
  groups: number;
  router: Router;
  /** Default: {@link ImmediateDispatcher}. */
  dispatcher?: (placement: Placement, claim: Claim) => Dispatcher;
  /** Moves requests within a round: told of every round, and asked at its own pace. */
  mover?: (placement: Placement, samplesOf: () => Iterable<Sample>) => Mover;
  transfer?: KvTransfer;
  /** Between two rounds: cut, training call, new weights; part of every step. */
  overheadSeconds: number;
}

/** Moves requests between servers while a round runs. */
export interface Mover {
  roundBegins(): void;
  roundEnds(): void;
}

/** One step. Seconds of virtual time, the overhead included in `seconds` alone. */
export interface StepOutcome {
  step: number;
  kind: RoundKind;
  seconds: number;
  /** From the end of nine tenths of its requests to the end of the last one. */
  tailSeconds: number;
  /** From the first server that has finished for good to the last. */
  gapSeconds: number;
  /** New groups were left to launch after it. */
  isWithinData: boolean;
  launchedGroups: number;
  takenGroups: number;
  meanTokens: number;
  trainedTokens: number;
  /** Requests that lost their KV cache because it was full. */
  preemptions: number;
  /** Under `auto`. */
  choice?: AutoChoice;
}

export interface RolloutOutcome {
  steps: StepOutcome[];
  ledger: LedgerCounters;
  /** Of all samples that were ever launched, their first draws: what an unbiased step is made of. */
  population: { samples: number; tokens: number; atCap: number };
  /** All virtual time, the overheads included. */
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
