import type { AttemptId, Epoch, GroupId, JobId, PoolName, RequestId, RoundId, ServerId } from './ids';
import type { Integer } from './integers';
import type { CancelMode } from './round-cancel.dto';
import type { AttemptRun } from './request.dto';
import type { CompletedReason, RoundKind } from './round.dto';
import type { TailPolicyName } from './tail-policy.dto';
import type { WeightSyncMode } from './weights.dto';

/** Fields of every event. */
interface EventFields<Type extends string> {
  /** Name of the event, as in its subject. */
  type: Type;
  /** Pool it happened in. */
  pool: PoolName;
  /** When it happened, by the clock of Redis, milliseconds since 1970. */
  atMs: Integer;
  /** Number of the event in its pool, without gaps, so that a reader detects missed events. */
  sequence: Integer;
}
interface RoundFields<Type extends string> extends EventFields<Type> {
  /** Job of the round. */
  job: JobId;
  /** The round. */
  roundId: RoundId;
}

/** A round was opened. */
export interface RoundOpenedEvent extends RoundFields<'round.opened'> {
  /** Training step the round is for, from 1. */
  step: Integer;
  /** New prompts, or groups of the long-tail queue. */
  kind: RoundKind;
  /** Groups the step trains. */
  neededGroups: Integer;
  /** New groups that will be submitted. */
  newGroups: Integer;
  /** Groups taken from the long-tail queue. */
  takeGroups: Integer;
  /** Tail policy of the round. */
  policy: TailPolicyName;
}
/** Groups were added to a round. */
export interface RoundSubmittedEvent extends RoundFields<'round.submitted'> {
  /** Groups that were added. */
  groups: Integer;
}
/** A group was accepted. */
export interface RoundProgressedEvent extends RoundFields<'round.progressed'> {
  /** The accepted group. */
  groupId: GroupId;
  /** Groups accepted so far. */
  acceptedGroups: Integer;
  /** Groups the step trains. */
  neededGroups: Integer;
}
/** A round was completed: it has all its groups, or its deadline has passed. */
export interface RoundCompletedEvent extends RoundFields<'round.completed'> {
  /** Training step of the round, from 1. */
  step: Integer;
  /** Why it was completed. */
  reason: CompletedReason;
  /** Groups accepted. */
  acceptedGroups: Integer;
}
/** All cut requests of a round are confirmed, and all groups that were not accepted are in the long-tail queue. */
export interface RoundSettledEvent extends RoundFields<'round.settled'> {}
/** The trainer has acknowledged a round. */
export interface RoundClosedEvent extends RoundFields<'round.closed'> {
  /** Training step of the round, from 1. */
  step: Integer;
  /** Groups that were trained. */
  trainedGroups: Integer;
}
/** A round was cancelled. */
export interface RoundCancelledEvent extends RoundFields<'round.cancelled'> {
  /** Training step of the round, from 1; another round will train it. */
  step: Integer;
  /** What happens to its groups. */
  mode: CancelMode;
  /** Groups that are requeued or dropped. */
  groups: Integer;
}

/** An attempt that has ended. The time of its end is `atMs` of the event. */
interface AttemptFields<Type extends string> extends EventFields<Type> {
  /** The request. */
  requestId: RequestId;
  /** Its round. */
  roundId: RoundId;
  /** The attempt. */
  attempt: AttemptId;
  /** When the request became pending, by the clock of Redis, milliseconds since 1970. */
  queuedAtMs?: Integer;
  /** When a worker claimed it, by the clock of Redis, milliseconds since 1970. */
  claimedAtMs?: Integer;
  /** The server that the worker has reported; absent if it never did. */
  serverId?: ServerId;
  /** Tokens of this attempt. */
  attemptTokens: Integer;
  /** What the worker measured; absent if the attempt had no server, or if the worker has expired. */
  run?: AttemptRun;
}
/** A sample was finished. */
export interface RequestFinishedEvent extends AttemptFields<'request.finished'> {
  /** Tokens of all attempts. */
  tokens: Integer;
  /** Why generation ended. */
  finishReason: 'stop' | 'length';
}
/**
 * An attempt ended without a sample. `cut`: its round was completed without its group, or the group was requeued.
 * `moved`: the request continues on another server. `stopped`: it was stopped for a change of weights. `returned`: it
 * came back by itself, e.g. because of a failure of the engine or an expired worker. `failed` and `dropped`: the
 * request has ended for good.
 */
export interface AttemptEndedEvent extends AttemptFields<'attempt.ended'> {
  outcome: 'cut' | 'moved' | 'stopped' | 'returned' | 'failed' | 'dropped';
}
/** A request was dropped for good. */
export interface RequestAbortedEvent extends EventFields<'request.aborted'> {
  /** The request. */
  requestId: RequestId;
  /** Its last attempt. */
  attempt: AttemptId;
  /** Tokens of all attempts. */
  tokens: Integer;
}
/** Redis has lost keys of a request, which cannot run any more. */
export interface RequestLostEvent extends EventFields<'request.lost'> {
  /** The request. */
  requestId: RequestId;
}

/** A group failed: one of its requests failed for good. */
export interface GroupFailedEvent extends RoundFields<'group.failed'> {
  /** The group. */
  groupId: GroupId;
}
/** A group was dropped. */
export interface GroupDroppedEvent extends RoundFields<'group.dropped'> {
  /** The group. */
  groupId: GroupId;
  /** The abort that dropped it, if one did. */
  abortId?: string;
  /** Reason given by the caller, if any. */
  reason?: string;
}
/** A group went to the long-tail queue. */
export interface LongtailRequeuedEvent extends RoundFields<'longtail.requeued'> {
  /** The group. */
  groupId: GroupId;
  /** Samples of it that are finished. */
  finishedSamples: Integer;
  /** Samples of the group. */
  samples: Integer;
}

/** Another trainer has taken a job over. */
export interface JobTakenOverEvent extends EventFields<'job.taken-over'> {
  /** The job. */
  job: JobId;
}
/** The trainer of a job has named the groups it trained (`job.reconcile`), up to the end of one step. */
export interface JobReconciledEvent extends EventFields<'job.reconciled'> {
  /** The job. */
  job: JobId;
  /** The step, from 1. */
  step: Integer;
  /** Groups of the last page that were not counted as trained before. */
  trainedGroups: Integer;
}
/** A snapshot of a job is complete. */
export interface JobSnapshottedEvent extends EventFields<'job.snapshotted'> {
  /** The job. */
  job: JobId;
  /** Tag of the snapshot. */
  tag: string;
  /** Steps trained at the snapshot. */
  step: Integer;
  /** Groups of the long-tail queue in the snapshot. */
  groups: Integer;
}
/** A job returns to a snapshot. */
export interface JobRestoredEvent extends EventFields<'job.restored'> {
  /** The job. */
  job: JobId;
  /** Tag of the snapshot. */
  tag: string;
  /** Epoch of the trainer from now on. */
  trainerEpoch: Epoch;
}

/** A change of weights has begun. */
export interface WeightsBegunEvent extends EventFields<'weights.begun'> {
  /** The change. */
  syncId: string;
  /** Version of the new weights. */
  version: Integer;
  /** What happens to running requests. */
  mode: WeightSyncMode;
  /** Version of the pool before; 0 before its first. */
  fromVersion: Integer;
}
interface WeightsEndedFields<Type extends string> extends EventFields<Type> {
  /** The change. */
  syncId: string;
  /** Version of the new weights. */
  version: Integer;
  /** Why it ended: `asked` or `deadline`. */
  reason: string;
}
/** The pool resumes with new weights. */
export interface WeightsCommittedEvent extends WeightsEndedFields<'weights.committed'> {}
/** The pool resumes with its previous weights. */
export interface WeightsRolledBackEvent extends WeightsEndedFields<'weights.rolled-back'> {}

/** The epoch of a server was expired, with its leases and sessions. */
export interface ServerFencedEvent extends EventFields<'server.fenced'> {
  /** The server. */
  serverId: ServerId;
  /** The epoch that has ended. */
  epoch: Epoch;
  /** Reason given by the caller, if any. */
  reason?: string;
}

/** An event of a pool, published on `rollout.v1.<pool>.event.<type>`. */
export type PoolEvent =
  | RoundOpenedEvent
  | RoundSubmittedEvent
  | RoundProgressedEvent
  | RoundCompletedEvent
  | RoundSettledEvent
  | RoundClosedEvent
  | RoundCancelledEvent
  | RequestFinishedEvent
  | AttemptEndedEvent
  | RequestAbortedEvent
  | RequestLostEvent
  | GroupFailedEvent
  | GroupDroppedEvent
  | LongtailRequeuedEvent
  | JobTakenOverEvent
  | JobReconciledEvent
  | JobSnapshottedEvent
  | JobRestoredEvent
  | WeightsBegunEvent
  | WeightsCommittedEvent
  | WeightsRolledBackEvent
  | ServerFencedEvent;
