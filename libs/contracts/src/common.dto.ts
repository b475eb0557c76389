import { IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import { IsEpoch, IsId, IsScanCursor, IsStamp, IsWithin, IsWorkerId } from './rules';
import type { Epoch, Integer, JobId, RoundId, ServerId, Stamp, WorkerId } from './scalars';

/** A request about one job. */
export class JobRequest {
  @IsId() job!: JobId;
}
/** A request about one job that fails if Redis has lost changes since the stamp. */
export class StampedJobRequest extends JobRequest {
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** A request of the trainer of a job. */
export class TrainerRequest extends StampedJobRequest {
  @IsEpoch() trainerEpoch!: Epoch;
}
/** A request of the trainer of a job about one round. */
export class RoundRequest extends TrainerRequest {
  @IsId() roundId!: RoundId;
}
/** A request about one server. */
export class ServerRequest {
  @IsId() serverId!: ServerId;
}
/** A request of a worker. */
export class WorkerRequest {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}
/** Target of a move. */
export class MoveTarget {
  /** Id of the target server. */
  @IsId() targetServerId!: ServerId;
  /** Required epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
}
/** A request for a part of a list. */
export class LimitedRequest {
  /**
   * Maximum entries of the reply.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** A request for one page of a scan. A page can have fewer entries than `limit` although another page follows. */
export class ScanRequest extends LimitedRequest {
  /** Cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
}

/** A reply to a trainer. */
export interface StampedReply {
  stamp: Stamp;
}
/** One page of a list. */
export interface PageReply {
  /** Cursor of the next page; absent on the last page. */
  cursor?: string;
}
/** One page of a list with a number as cursor. */
export interface NumberedPageReply {
  /** Cursor of the next page, to be sent with the same body; absent on the last page. */
  cursor?: Integer;
}
/** Position of a job. */
export interface JobPosition {
  /** Epoch of the trainer of the job. The trainer sends the epoch with every later call. */
  trainerEpoch: Epoch;
  /** Steps trained (rounds closed). */
  stepsTrained: Integer;
  /** Groups ever submitted: the trainer's position in its data. */
  submittedGroups: Integer;
}
