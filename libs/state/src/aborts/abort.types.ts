import type {
  AbortResult,
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
  | { requestIds: readonly RequestId[] }
  | { sessionId: string }
  | { groupId: GroupId; job: JobId }
  | { workerId: WorkerId }
  | { serverId: ServerId }
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
export interface LeaseFence {
  leaseId: LeaseId;
  requestId: RequestId;
  workerId: WorkerId;
  workerEpoch: number;
}

/** Whose holders are to be told. */
export interface AbortCommands {
  aborts: AttemptFence[];
  leases: LeaseFence[];
  discardedRefs: string[];
}
export interface SelectPage extends AbortCommands {
  more: boolean;
}
export interface RepeatPage extends AbortCommands {
  /** Groups ended without the confirmation of their holders. */
  overdue: number;
  groupCursor?: number;
  leaseCursor?: number;
}
export interface AbortResultsPage {
  results: AbortResult[];
  /** Results of the page that are not confirmed. */
  aborting: number;
  cursor?: number;
}
/** Payloads of a dropped group that was deleted; the prompt comes first and may belong to somebody else. */
export interface ForgottenGroup {
  job: JobId;
  groupId: GroupId;
  refs: string[];
}
