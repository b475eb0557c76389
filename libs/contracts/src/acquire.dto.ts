import { IsBoolean, IsIn, IsOptional, MaxLength } from 'class-validator';
import { ENGINE_FEATURES, type EngineFeature } from './capabilities.dto';
import { LIMITS } from './limits';
import { MAX_COMPOSED_ID_BYTES } from './ids';
import { IsAttempt, IsCorrelationId, IsCounter, IsEpoch, IsId, IsLabels, IsList, IsWithin, IsWorkerId } from './rules';
import type { AttemptId, Epoch, Integer, JobId, Labels, ServerId, WorkerId } from './scalars';

/** One acquire; part of `lb.acquire-many` and, with the worker, of `lb.acquire`. */
export class AcquireItem {
  /** Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s afterwards. */
  @IsId() acquireId!: string;
  /** Request of the lease, for correlation only. A trajectory may use one requestId for all turns. */
  @IsCorrelationId() requestId!: string;
  /** Attempt of the claimed request, as `lb.leases` shows it. */
  @IsOptional() @IsAttempt() attempt?: AttemptId;
  /** Session: turns of one session stay on one server. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /**
   * Session that has started this session as a subagent; only with `sessionAdmission`. The parent of the first acquire
   * stays: SESSION_CONFLICT for another one, and for a circle of parents.
   */
  @IsOptional() @IsCorrelationId() parentSessionId?: string;
  /**
   * Job of the session, which ends when the job is deleted; only with `sessionAdmission`. Default: the job of a
   * `groupId` that is composed of job and group.
   */
  @IsOptional() @IsId() job?: JobId;
  /** Group of the request, for spread or affinity. */
  @IsOptional() @IsId({}, MAX_COMPOSED_ID_BYTES) groupId?: string;
  /**
   * Priority among waiting acquires, from 0 (lowest) to 9.
   * @default 5
   */
  @IsOptional() @IsWithin(0, 9) priority?: Integer;
  /** Context of the request, tokens. */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) contextTokens?: Integer;
  /** Only a server with exactly this weight version. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Only a server with at least this weight version. */
  @IsOptional() @IsCounter(0) minWeightVersion?: Integer;
  /** Only a server at most this many versions behind the newest version among servers of the pool that take leases. */
  @IsOptional() @IsCounter(0) maxWeightLag?: Integer;
  /** Servers that may not get the lease, for example a server that has just failed. */
  @IsOptional() @IsList(LIMITS.excludedServers) @IsId({ each: true }) excludeServers?: ServerId[];
  /** Servers on which the request has just failed: they get the lease only while no other server can take it. */
  @IsOptional() @IsList(LIMITS.excludedServers) @IsId({ each: true }) avoidServers?: ServerId[];
  /** Only a server that has all these labels. */
  @IsOptional() @IsLabels() labels?: Labels;
  /** Required features. A server is left out if its engine is known to lack one. */
  @IsOptional() @IsList(ENGINE_FEATURES.length) @IsIn(ENGINE_FEATURES, { each: true }) needs?: EngineFeature[];
  /**
   * Model or adapter. A server is left out if its engine is known not to list the model. While all engines of the pool
   * list the same models, the model is no constraint. MODEL_NOT_FOUND when no server of the pool has the model.
   */
  @IsOptional() @MaxLength(LIMITS.modelNameCharacters) model?: string;
  /** Data-parallel rank of the session. The rank is stored with the session and returned with later leases. */
  @IsOptional() @IsWithin(0, 65_535) dpRank?: Integer;
  /**
   * Server that gets the lease regardless of session and policy. If this server cannot take the lease, the usual choice
   * follows, with the branch `bound-unavailable`. The session is bound to the chosen server.
   */
  @IsOptional() @IsId() boundServerId?: ServerId;
  /** Required epoch of `boundServerId`. */
  @IsOptional() @IsEpoch() boundServerEpoch?: Epoch;
  /** Store and return the full snapshot of the decision. */
  @IsOptional() @IsBoolean() explain?: boolean;
  /**
   * Wait at most this long for room, milliseconds; 0 = answer at once.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
}

/** `lb.acquire` */
export class AcquireRequest extends AcquireItem {
  /** The worker that will hold the lease. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}
