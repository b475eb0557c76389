import { type PageReply, ScanRequest, ServerRequest } from './common.dto';
import { Type } from 'class-transformer';
import { Equals, IsBoolean, IsIn, IsOptional, IsUrl, Matches, MaxLength, ValidateNested } from 'class-validator';
import { EngineCapabilities } from './capabilities.dto';
import { LIMITS } from './limits';
import { IsCorrelationId, IsCounter, IsDecimal, IsEpoch, IsId, IsLabels, IsScanCursor, IsWithin } from './rules';
import type { Epoch, Integer, Labels, ServerId, WorkerId } from './scalars';

export const ENGINE_DIALECTS = ['vllm', 'sglang', 'openai'] as const;
/** API of an engine. */
export type EngineDialect = (typeof ENGINE_DIALECTS)[number];

export const SERVER_STATES = [
  'pending',
  'ready',
  'suspect',
  'failed',
  'draining',
  'removed',
  'quarantined',
  'cordoned',
] as const;
/**
 * State of a server. Only `ready` servers get new leases. A `pending` server has not answered a probe or sent a
 * heartbeat yet, for example while its engine loads.
 */
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * `server.register`: adds or updates a server; idempotent. The same instanceId updates the description of the server,
 * never its state. Another instanceId, or none, starts a new epoch: leases and sessions of the old epoch expire, and
 * the server is `pending` until it answers a probe or sends a heartbeat. The call waits for the first probe, at most a
 * second.
 */
export class RegisterServerRequest extends ServerRequest {
  /** Base URL of the engine, without user, password and query. Callers see this URL. */
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  @MaxLength(512)
  @Matches(/^[A-Za-z]+:\/\/[!"$-.0->A-~]+(\/[!"$->@-~]*)?$/, {
    message: 'endpoint must be plain ASCII without user, password and query, other characters percent-encoded',
  })
  endpoint!: string;
  /** API of the engine. */
  @IsIn(ENGINE_DIALECTS) dialect!: EngineDialect;
  /**
   * Id of this start of the engine. A registration without an instanceId counts as a restart, unless `registrationId`
   * is the id of the last registration.
   */
  @IsOptional() @IsCorrelationId() instanceId?: string;
  /** Model of the engine, returned with leases. */
  @IsOptional() @MaxLength(LIMITS.modelNameCharacters) model?: string;
  /** Maximum leases at the same time. */
  @IsWithin(1, 1_000_000) maxInflight!: Integer;
  /**
   * Relative capacity: load counts as leases / weight.
   * @default 1
   */
  @IsOptional() @IsDecimal(0.001, 1_000) weight?: number;
  /** Weight version of the engine; absent = unknown. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Labels that an acquire may require, for example a zone or a GPU type. */
  @IsOptional() @IsLabels() labels?: Labels;
  /** Capabilities of the engine; absent = the load-balancer probes the engine. */
  @IsOptional() @ValidateNested() @Type(() => EngineCapabilities) capabilities?: EngineCapabilities;
  /**
   * False for an engine that only callers can reach. Such an engine is not probed and counts as answering.
   * @default true
   */
  @IsOptional() @IsBoolean() probe?: boolean;
  /**
   * Id of this call, for idempotency without an instanceId. A repeat of the last registration keeps the epoch; a late
   * repeat of an earlier registration is answered FENCED. The clients of this repository add the id themselves.
   */
  @IsOptional() @IsId() registrationId?: string;
}
/** Id, epoch and state of a server. */
export type ServerName = Pick<ServerStatus, 'serverId' | 'epoch' | 'state'>;
/** Part of the reply to a call that reports the weight version of a server. */
export interface WeightVersionReply {
  /**
   * False if the engine has not reset its prefix cache: the reported version does not count yet, and the server takes
   * no leases. The load-balancer asks for the reset again at each probe and each report of the version.
   */
  weightVersionTaken?: false;
}
export interface RegisterServerReply extends WeightVersionReply, ServerName {}

/** `server.heartbeat`: keeps a server ready; for sidecars. The load-balancer also probes endpoints itself. */
export class ServerHeartbeatRequest extends ServerRequest {
  /** Epoch from the registration. */
  @IsEpoch() epoch!: Epoch;
  /** Present weight version of the engine; absent = unchanged. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
}
export interface ServerHeartbeatReply extends WeightVersionReply {
  /** Present state of the server. */
  state: ServerState;
  /** Weight version that a server must have to get leases, otherwise it is `quarantined`. Absent: any version. */
  requiredWeightVersion?: Integer;
}

/** `server.update`: changes the given fields of a server. Leases, sessions and epoch stay. Errors: SERVER_NOT_FOUND. */
export class UpdateServerRequest extends ServerRequest {
  /** Maximum leases. A maximum below the present number only stops new leases. */
  @IsOptional() @IsWithin(1, 1_000_000) maxInflight?: Integer;
  /** Relative capacity: load counts as leases / weight. */
  @IsOptional() @IsDecimal(0.001, 1_000) weight?: number;
  /** Present weight version of the engine. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /**
   * A load has failed, so the engine may have a part of the new weights. The server takes no leases until its weights
   * are reported. Not with `weightVersion`.
   */
  @IsOptional() @Equals(true) weightsUnknown?: true;
  /** The new labels, which replace all old ones. */
  @IsOptional() @IsLabels() labels?: Labels;
}
/**
 * `server.drain`: stops new leases, and removes the server with its last lease. At the deadline the server is removed
 * with all remaining leases, and holders learn this from `worker.sync`. A repeat can only make the deadline earlier.
 */
export class DrainServerRequest extends ServerRequest {
  /** Time until the deadline, milliseconds; at most 7 days. */
  @IsWithin(0, 604_800_000) deadlineMs!: Integer;
}
/**
 * `server.cordon`: stops new leases; existing leases continue. A cordon stays in force after a restart of the engine.
 */
export class CordonServerRequest extends ServerRequest {}
/** `server.uncordon`: ends a cordon or a drain. */
export class UncordonServerRequest extends ServerRequest {}
export interface ServerChangeReply
  extends WeightVersionReply, ServerName, Pick<ServerStatus, 'inflight' | 'capacity' | 'drainUntilMs'> {}

/**
 * `server.fence`: expires the epoch of a server as if the engine had failed, for an engine that does not stop aborted
 * requests. The leases and sessions of the server expire, and late releases change nothing. The server is `failed`
 * until it is registered with another instanceId.
 */
export class FenceServerRequest extends ServerRequest {
  /** The epoch to expire. Another current epoch stays. */
  @IsEpoch() epoch!: Epoch;
  /** Text for the log and the event. */
  @IsOptional() @MaxLength(256) reason?: string;
}
export interface FenceServerReply extends ServerName {
  /** False if the server has another epoch. */
  changed: boolean;
}

/**
 * `server.reconcile`: makes workers prove their leases on a server, for example when leases and engine load differ.
 * Leases of expired worker epochs are returned at once. Live workers are asked for a `worker.sync` at their next
 * heartbeat, and return leases that they do not hold. Errors: SERVER_NOT_FOUND, FENCED.
 */
export class ReconcileServerRequest extends ServerRequest {
  /** Required epoch; FENCED if the server has another epoch. */
  @IsOptional() @IsEpoch() epoch?: Epoch;
  /** Cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
/** A live worker epoch with leases on the server. The worker is asked for a `worker.sync`. */
export interface LeaseHolder {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Leases of the worker in this page. */
  leases: Integer;
}
export interface ReconcileServerReply extends PageReply {
  /** Present leases of the server. */
  leases: Integer;
  /** Running requests in the load report. `engineRunning` to `drift` are absent if the engine reports no load. */
  engineRunning?: Integer;
  /** Requests that wait in the engine. */
  engineWaiting?: Integer;
  /** Age of the report of the engine, milliseconds. An old report explains a difference. */
  reportAgeMs?: Integer;
  /** Leases minus running and waiting requests. */
  drift?: Integer;
  /** Workers of this page of leases; a worker may be in several pages. */
  holders: LeaseHolder[];
  /** Leases of expired worker epochs in this page. */
  returned: Integer;
}

/** `server.remove`: removes a server. The leases of the server expire at once, and later releases change nothing. */
export class RemoveServerRequest extends ServerRequest {}
export interface RemoveServerReply {
  /** False if the server is unknown. */
  removed: boolean;
}

/**
 * `server.quarantine`: takes a server out of service at once, and keeps the registration, so that somebody can examine
 * the engine. The epoch of the server expires with its leases and sessions. The server is `failed` until the engine has
 * restarted, then `cordoned` until `server.uncordon`.
 */
export class QuarantineServerRequest extends ServerRequest {
  /** Text for the log and the event. */
  @IsOptional() @MaxLength(256) reason?: string;
}

/** `server.get`: one server. Errors: SERVER_NOT_FOUND. */
export class GetServerRequest extends ServerRequest {}

/** `server.list`: one page of servers. */
export class ListServersRequest extends ScanRequest {}
/** One server. */
export interface ServerStatus {
  serverId: ServerId;
  /** Epoch of the server. */
  epoch: Epoch;
  /** State of the server. */
  state: ServerState;
  /** Base URL of the engine. */
  endpoint: string;
  /** API of the engine. */
  dialect: EngineDialect;
  /** Model of the engine: the model of its registration, or else the first model that the engine lists. */
  model?: string;
  /** Models and adapters that the engine lists; a last `*` stands for more. Absent before the list is known. */
  models?: string[];
  /** Present number of leases. */
  inflight: Integer;
  /** Maximum leases at the same time. */
  maxInflight: Integer;
  /** Relative capacity: load counts as leases / weight. */
  weight: number;
  /** Weight version of the server. */
  weightVersion: Integer;
  /** Time since the engine answered a probe or sent a heartbeat, milliseconds. */
  heartbeatAgeMs: Integer;
  /** Present maximum of leases: below maxInflight in slow start or with adaptive concurrency. */
  capacity: Integer;
  /** Deadline of a drain, time of Redis, milliseconds. */
  drainUntilMs?: Integer;
  /**
   * Time of Redis until which the server takes no new leases, milliseconds, because the engine was busy or calls
   * failed.
   */
  busyUntilMs?: Integer;
  /**
   * Calls of the server got no tokens although the engine answers. The server gets one call at a time until a call gets
   * a token.
   */
  hung?: true;
  /** False if the server is not probed, otherwise absent. */
  probe?: false;
  /** Labels of the server, if it has any. */
  labels?: Labels;
  /** Capabilities of the engine; absent before the first probe. */
  capabilities?: EngineCapabilities;
  /**
   * Mean tokens of an event that callers of the server have received, of an engine that takes `stream_interval`
   * (`capabilities`) and sends less than half or more than twice of what it is asked for: 1 if it ignores the field.
   * Absent while events come as asked.
   */
  observedStreamInterval?: Integer;
  /** Last load report of the engine; absent if the engine reports none. */
  load?: ServerLoadReport;
  /** Start time that the engine reports, by its clock, seconds. A later time shows a restart. */
  engineStartedAtSeconds?: number;
  /** Weight version that the engine reports; -1: no number. `weightVersion` follows each change. */
  engineWeightVersion?: Integer;
  /**
   * Weight version before the failure of the server, which becomes `weightVersion` again if the engine has not
   * restarted.
   */
  unconfirmedWeightVersion?: Integer;
  /** Identity of the engine in the list of discovery: the uid of its pod, or its base URL; absent if not listed. */
  listedAs?: string;
  /** The server is `cordoned` because discovery does not list its engine as ready. */
  withheld?: true;
  /**
   * The weights of the server are unknown, because a change of weights ended at its deadline before the server was
   * reported, or a load failed. The server takes no leases until its weight version is reported.
   */
  weightsUnknown?: true;
  /**
   * Weight version that does not count yet, because the engine has no salts and has not reset its prefix cache. The
   * server takes no leases. The load-balancer asks for the reset at each probe while no request runs on the server.
   */
  pendingWeightVersion?: Integer;
}
/** A load report of an engine. */
export interface ServerLoadReport {
  /** Requests that the engine runs. */
  running: Integer;
  /** Requests that wait in the engine. */
  waiting: Integer;
  /** KV cache in use, 0 to 1. */
  kvUse?: number;
  /** Tokens that the KV caches of the engine hold. */
  kvTokens?: Integer;
  /** Preemptions since the start of the engine. */
  preemptions?: Integer;
  /** Age of the report, milliseconds. */
  ageMs: Integer;
}
export interface ListServersReply extends PageReply {
  /** The servers of the page. */
  servers: ServerStatus[];
}
