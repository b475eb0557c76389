import type {
  AbortResult,
  AbortScope,
  Epoch,
  GroupId,
  JobId,
  LeaseId,
  RequestId,
  RoundId,
  ServerId,
  WorkerId,
} from '@broomwagon/contracts';
import type { AttemptFence } from '../requests/request.types';

/** What is to be aborted. */
export type AbortSelector =
  | { requestIds: readonly RequestId[]; refuseAcquiresMs?: number; scope?: AbortScope }
  | { sessionId: string; scope?: AbortScope }
  | { groupId: GroupId; job: JobId }
  | { workerId: WorkerId; scope?: AbortScope }
  | { serverId: ServerId; scope?: AbortScope }
  | { roundId: RoundId; job: JobId }
  | { job: JobId }
  | { all: true };

export interface BeginAbortArgs {
  abortId: string;
  selector: AbortSelector;
  reason: string;
  /** Life of the answer, of tombstones and of dropped groups, milliseconds. */
  keptMs: number;
}

/** A lease of a caller that only routes: its holder is to end the call and release it. */
export interface LeaseFence extends Omit<AttemptFence, 'attempt'> {
  leaseId: LeaseId;
}

/** An epoch of a server that is to be expired. */
export interface ServerFence {
  serverId: ServerId;
  epoch: Epoch;
}
/** Where a request runs. */
export type RunningLease = { requestId: RequestId } & ServerFence;
/** What is ended without its holder. `fenced`: the epoch of the server it ran on is expired. */
export interface OverdueArgs {
  attempts: (Pick<AttemptFence, 'requestId' | 'attempt'> & { fenced: boolean })[];
  leaseIds: LeaseId[];
}

/** Whose holders are to be told. */
export interface AbortCommands {
  aborts: AttemptFence[];
  leases: LeaseFence[];
}
export interface SelectPage extends AbortCommands {
  /** Of parked acquires, to be sent to their callers. */
  answers: { acquireId: string; replyTo: string; error: 'ABORTED' }[];
  more: boolean;
}
export interface RepeatPage extends AbortCommands {
  /** Attempts whose holders live and have not confirmed within the deadline. */
  overdue: Pick<AttemptFence, 'requestId' | 'attempt'>[];
  overdueLeases: ({ leaseId: LeaseId } & ServerFence)[];
  groupCursor?: number;
  leaseCursor?: number;
}
export interface AbortResultsPage {
  results: AbortResult[];
  /** Results of the page that are not confirmed. */
  aborting: number;
  cursor?: number;
}
