import type { CancelMode } from './round-cancel.dto';
import type { AttemptRun, CompleteItem } from './request.dto';
import type { JobSnapshotStatus } from './job-snapshot.dto';
import type { LongtailGroup } from './longtail.dto';
import type { CompletedReason, RoundPlan, RoundStatus } from './round.dto';
import type { TailPolicyName } from './tail-policy.dto';
import type { WeightSync } from './weights.dto';
import type { AttemptId, Epoch, GroupId, Integer, JobId, PoolName, RequestId, RoundId, ServerId } from './scalars';

export const EVENT_TYPES = [
  'round.opened',
  'round.submitted',
  'round.progressed',
  'round.completed',
  'round.settled',
  'round.closed',
  'round.cancelled',
  'request.finished',
  'attempt.ended',
  'request.aborted',
  'request.lost',
  'group.failed',
  'group.dropped',
  'longtail.requeued',
  'job.taken-over',
  'job.reconciled',
  'job.snapshotted',
  'job.restored',
  'weights.begun',
  'weights.committed',
  'weights.rolled-back',
  'server.paused',
  'server.resumed',
  'server.fenced',
  'server.hung',
  'pool.set-back',
] as const;
/** Name of an event. */
export type EventType = (typeof EVENT_TYPES)[number];

/** Fields of every event. */
interface EventFields<Type extends EventType> {
  /** Name of the event, as in its subject. */
  type: Type;
  /** Pool of the event. */
  pool: PoolName;
  /** When the event happened, by the clock of Redis, milliseconds since 1970. */
  atMs: Integer;
  /** Number of the event in its pool, without gaps, so that a reader detects missed events. */
  sequence: Integer;
}
interface JobFields<Type extends EventType> extends EventFields<Type> {
  /** Id of the job. */
  job: JobId;
}
interface RoundFields<Type extends EventType> extends JobFields<Type> {
  /** Id of the round. */
  roundId: RoundId;
}
interface RequestFields<Type extends EventType> extends EventFields<Type> {
  /** Id of the request. */
  requestId: RequestId;
}
interface GroupFields<Type extends EventType> extends RoundFields<Type> {
  /** Id of the group. */
  groupId: GroupId;
}

/** A round was opened. */
export interface RoundOpenedEvent
  extends
    RoundFields<'round.opened'>,
    Pick<RoundStatus, 'step' | 'kind' | 'neededGroups' | 'newGroups'>,
    Pick<RoundPlan, 'takeGroups'> {
  /** Tail policy of the round. */
  policy: TailPolicyName;
}
/** Groups were added to a round. */
export interface RoundSubmittedEvent extends RoundFields<'round.submitted'> {
  /** Groups that were added. */
  groups: Integer;
}
/** A group was accepted. */
export interface RoundProgressedEvent
  extends GroupFields<'round.progressed'>, Pick<RoundStatus, 'acceptedGroups' | 'neededGroups'> {}
/** A round was completed. */
export interface RoundCompletedEvent
  extends RoundFields<'round.completed'>, Pick<RoundStatus, 'step' | 'acceptedGroups'> {
  /** Why the round was completed. */
  reason: CompletedReason;
}
/** All cut requests of a round are confirmed, and all groups that were not accepted are in the long-tail queue. */
export interface RoundSettledEvent extends RoundFields<'round.settled'> {}
/** The trainer has closed a round: its groups are trained. */
export interface RoundClosedEvent extends RoundFields<'round.closed'>, Pick<RoundStatus, 'step'> {
  /** Groups that were trained. */
  trainedGroups: Integer;
}
/** A round was cancelled. */
export interface RoundCancelledEvent extends RoundFields<'round.cancelled'> {
  /** Training step of the round, from 1. Another round will train this step. */
  step: Integer;
  /** Treatment of the groups of the round. */
  mode: CancelMode;
  /** Groups that are requeued or dropped. */
  groups: Integer;
  /** Why the round was cancelled. */
  reason?: string;
}

/** An attempt that has ended at `atMs` of the event. */
interface AttemptFields<Type extends EventType> extends RequestFields<Type> {
  /** Round of the attempt. */
  roundId: RoundId;
  /** Id of the attempt. */
  attempt: AttemptId;
  /** When the request became pending, by the clock of Redis, milliseconds since 1970. */
  queuedAtMs?: Integer;
  /** When a worker claimed the request, by the clock of Redis, milliseconds since 1970. */
  claimedAtMs?: Integer;
  /** The server that the worker has reported; absent if the worker has reported none. */
  serverId?: ServerId;
  /** Tokens of this attempt. */
  attemptTokens: Integer;
  /** Measurements of the worker; absent if the attempt had no server, or if the worker has expired. */
  run?: AttemptRun;
}
/** A sample was finished. */
export interface RequestFinishedEvent extends AttemptFields<'request.finished'>, Pick<CompleteItem, 'finishReason'> {
  /** Tokens of all attempts of the request. */
  tokens: Integer;
}
/**
 * An attempt ended without a sample. `cut`: the round was completed without the group, or the group was requeued.
 * `moved`: the request continues on another server. `stopped`: a change of weights stopped the attempt. `returned`: the
 * attempt ended unfinished, e.g. because the engine failed or the worker expired. `failed` and `dropped`: the request
 * has ended for good.
 */
export interface AttemptEndedEvent extends AttemptFields<'attempt.ended'> {
  /** Outcome for the request. */
  outcome: 'cut' | 'moved' | 'stopped' | 'returned' | 'failed' | 'dropped';
}
/** A request was dropped for good. */
export interface RequestAbortedEvent extends RequestFields<'request.aborted'> {
  /** Last attempt of the request. */
  attempt: AttemptId;
  /** Tokens of all attempts of the request. */
  tokens: Integer;
}
/** A request cannot run any more, because Redis has lost keys of it. */
export interface RequestLostEvent extends RequestFields<'request.lost'> {}

/** A group failed: one of its requests failed for good. */
export interface GroupFailedEvent extends GroupFields<'group.failed'> {
  /** Why the sample failed, as in `request.fail`; `lost`: Redis has lost a part of the sample. */
  reason?: string;
}
/** A group was dropped. */
export interface GroupDroppedEvent extends GroupFields<'group.dropped'> {
  /** The abort that dropped the group, if an abort did so. */
  abortId?: string;
  /** Reason given by the caller, if any. */
  reason?: string;
}
/** A group went to the long-tail queue. */
export interface LongtailRequeuedEvent
  extends GroupFields<'longtail.requeued'>, Pick<LongtailGroup, 'finishedSamples' | 'samples'> {}

/** Another trainer has taken a job over. */
export interface JobTakenOverEvent extends JobFields<'job.taken-over'> {}
/** The trainer of a job has named the last groups of a step that it has trained (`job.reconcile`). */
export interface JobReconciledEvent extends JobFields<'job.reconciled'> {
  /** The step, from 1. */
  step: Integer;
  /** Groups of the last page that were not counted as trained before. */
  trainedGroups: Integer;
}
/** A snapshot of a job is complete. */
export interface JobSnapshottedEvent
  extends JobFields<'job.snapshotted'>, Pick<JobSnapshotStatus, 'tag' | 'step' | 'groups'> {}
/** A job was restored from a snapshot. */
export interface JobRestoredEvent extends JobFields<'job.restored'> {
  /** Tag of the snapshot. */
  tag: string;
  /** Epoch of the trainer from now on. */
  trainerEpoch: Epoch;
}

/** A change of weights has started. */
export interface WeightsBegunEvent
  extends EventFields<'weights.begun'>, Pick<WeightSync, 'syncId' | 'version' | 'mode' | 'fromVersion'> {}
interface WeightsEndedFields<Type extends EventType> extends EventFields<Type>, Pick<WeightSync, 'syncId' | 'version'> {
  /** Why the change ended: `asked` or `deadline`. */
  reason: string;
}
/** The pool resumes with new weights. */
export interface WeightsCommittedEvent extends WeightsEndedFields<'weights.committed'> {}
/** The pool resumes with its previous weights. */
export interface WeightsRolledBackEvent extends WeightsEndedFields<'weights.rolled-back'> {}

interface EnginePauseFields<Type extends EventType> extends EventFields<Type> {
  /** Id of the server. */
  serverId: ServerId;
  /** The change of weights. */
  syncId: string;
}
/** The engine of a server was paused for a change of weights. Engines that cannot be paused have no such event. */
export interface ServerPausedEvent extends EnginePauseFields<'server.paused'> {}
/** The engine of a server was resumed after a change of weights. */
export interface ServerResumedEvent extends EnginePauseFields<'server.resumed'> {}
/** The epoch of a server was expired, with its leases and sessions. */
export interface ServerFencedEvent extends EventFields<'server.fenced'> {
  /** Id of the server. */
  serverId: ServerId;
  /** The epoch that has ended. */
  epoch: Epoch;
  /** Reason given by the caller, if any. */
  reason?: string;
}
/**
 * Calls of a server got no tokens although the engine answers. The epoch of the server was expired, and the calls move.
 */
export interface ServerHungEvent extends EventFields<'server.hung'> {
  /** Id of the server. */
  serverId: ServerId;
  /** The epoch that has ended. */
  epoch: Epoch;
  /** Time without a token, milliseconds. */
  silentMs: Integer;
}
/** Redis was restarted or set back: the last changes of the pool and its last events may be lost. */
export interface PoolSetBackEvent extends EventFields<'pool.set-back'> {}

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
  | ServerPausedEvent
  | ServerResumedEvent
  | ServerFencedEvent
  | ServerHungEvent
  | PoolSetBackEvent;
