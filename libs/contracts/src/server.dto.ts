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
 * State of a server. Only `ready` servers get new leases. `pending`: registered, but it has not answered a probe or
 * sent a heartbeat yet, for example while its engine loads.
 */
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * `server.register`: adds or updates a server; idempotent. Another instanceId, or none, starts a new epoch: old leases
 * and sessions expire, and the server is `pending` until it answers a probe (the call waits for the first one, for at
 * most a second) or sends a heartbeat. The same instanceId updates the description of the server, never its state.
 */
export class RegisterServerRequest extends ServerRequest {
  /** Base URL of the engine, without user, password and query: it is shown to callers. */
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  @MaxLength(512)
  @Matches(/^[A-Za-z]+:\/\/[!"$-.0->A-~]+(\/[!"$->@-~]*)?$/, {
    message: 'endpoint must be plain ASCII without user, password and query, other characters percent-encoded',
  })
  endpoint!: string;
  /** API of the engine. */
  @IsIn(ENGINE_DIALECTS) dialect!: EngineDialect;
  /**
   * Id of this start of the engine. A registration without an instanceId is a restart, unless it repeats the
   * `registrationId` of the last one.
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
  /** Capabilities of the engine; absent = the load-balancer probes them. */
  @IsOptional() @ValidateNested() @Type(() => EngineCapabilities) capabilities?: EngineCapabilities;
  /**
   * False for an engine that only its callers can reach: it is not probed and counts as answering.
   * @default true
   */
  @IsOptional() @IsBoolean() probe?: boolean;
  /**
   * Id of this call, for idempotency without an instanceId: a repeat of the server's last registration keeps the epoch,
   * and a late repeat of an earlier one is answered FENCED. The clients of this repository add it.
   */
  @IsOptional() @IsId() registrationId?: string;
}
/** Which start of which server, and its state. */
export type ServerName = Pick<ServerStatus, 'serverId' | 'epoch' | 'state'>;
/** Part of the reply to a call that reports the weight version of a server. */
export interface WeightVersionReply {
  /**
   * The engine has not reset its prefix cache, so the version does not count yet and the server takes no leases. The
   * load-balancer asks for the reset again at each probe; a report of the version does so at once.
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

/** `server.update`: changes the given fields; absent ones stay, as do leases, sessions and epoch. SERVER_NOT_FOUND. */
export class UpdateServerRequest extends ServerRequest {
  /** Maximum leases; a value below the present number only stops new leases. */
  @IsOptional() @IsWithin(1, 1_000_000) maxInflight?: Integer;
  /** Relative capacity: load counts as leases / weight. */
  @IsOptional() @IsDecimal(0.001, 1_000) weight?: number;
  /** Present weight version of the engine. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /**
   * A load has failed, so the engine may have a part of the new weights: the server takes no leases until its weights
   * are reported. Not with `weightVersion`.
   */
  @IsOptional() @Equals(true) weightsUnknown?: true;
  /** The new labels, which replace all old ones. */
  @IsOptional() @IsLabels() labels?: Labels;
}
/**
 * `server.drain`: stops new leases and removes the server with its last lease, or at the deadline with all remaining
 * ones (their holders learn it from `worker.sync`). A repeat can only make the deadline earlier.
 */
export class DrainServerRequest extends ServerRequest {
  /** Time until the deadline, milliseconds; at most 7 days. */
  @IsWithin(0, 604_800_000) deadlineMs!: Integer;
}
/** `server.cordon`: stops new leases; existing ones continue. It stays in force after a restart of the engine. */
export class CordonServerRequest extends ServerRequest {}
/** `server.uncordon`: ends a cordon, and a drain in progress. */
export class UncordonServerRequest extends ServerRequest {}
export interface ServerChangeReply
  extends WeightVersionReply, ServerName, Pick<ServerStatus, 'inflight' | 'capacity' | 'drainUntilMs'> {}

/**
 * `server.fence`: expires the epoch of a server as if its engine had failed, for an engine that does not stop aborted
 * requests. Its leases and sessions expire, and late releases change nothing; it stays `failed` until it registers with
 * another instanceId.
 */
export class FenceServerRequest extends ServerRequest {
  /** The epoch to expire; another current epoch stays. */
  @IsEpoch() epoch!: Epoch;
  /** Text for the log and the event. */
  @IsOptional() @MaxLength(256) reason?: string;
}
export interface FenceServerReply extends ServerName {
  /** False if that epoch is not the current one. */
  changed: boolean;
}

/**
 * `server.reconcile`: makes workers prove their leases on a server whose leases differ from the load of its engine.
 * Leases of expired worker epochs are returned at once; the next heartbeat asks live workers for a `worker.sync`, and
 * they return the leases they do not hold. Errors: SERVER_NOT_FOUND, FENCED.
 */
export class ReconcileServerRequest extends ServerRequest {
  /** Only if this is the current epoch. */
  @IsOptional() @IsEpoch() epoch?: Epoch;
  /** Cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
/** A live worker epoch with leases on the server, which is asked for a sync. */
export interface LeaseHolder {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Leases of the worker in this page. */
  leases: Integer;
}
export interface ReconcileServerReply extends PageReply {
  /** Present leases of the server. */
  leases: Integer;
  /** Requests that its engine runs, as reported; these four fields are absent if it reports no load. */
  engineRunning?: Integer;
  /** Requests that wait in the engine. */
  engineWaiting?: Integer;
  /** Age of the report of the engine, milliseconds; an old report explains a difference. */
  reportAgeMs?: Integer;
  /** Leases minus running and waiting requests. */
  drift?: Integer;
  /** Workers of this page of leases; a worker may be in several pages. */
  holders: LeaseHolder[];
  /** Leases of expired worker epochs in this page. */
  returned: Integer;
}

/** `server.remove`: removes a server; its leases expire at once, and later releases change nothing. */
export class RemoveServerRequest extends ServerRequest {}
export interface RemoveServerReply {
  /** False if there was no such server. */
  removed: boolean;
}

/**
 * `server.quarantine`: takes a server out of service at once and keeps it registered, for an engine that is to be
 * examined: it is cordoned, and its epoch expires with its leases and sessions. It is `failed` until its engine has
 * restarted, then `cordoned`. `server.uncordon` ends it.
 */
export class QuarantineServerRequest extends ServerRequest {
  /** Text for the log and the event. */
  @IsOptional() @MaxLength(256) reason?: string;
}

/** `server.get`: one server. SERVER_NOT_FOUND. */
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
  /** Models and adapters that the engine lists, with `*` if it has more; absent before they are known. */
  models?: string[];
  /** Present number of leases. */
  inflight: Integer;
  /** Maximum leases at the same time. */
  maxInflight: Integer;
  /** Relative capacity: load counts as leases / weight. */
  weight: number;
  /** Weight version of the server. */
  weightVersion: Integer;
  /** Time since its engine answered a probe or sent a heartbeat, milliseconds. */
  heartbeatAgeMs: Integer;
  /** Present maximum of leases: below maxInflight in slow start or with adaptive concurrency. */
  capacity: Integer;
  /** Deadline of a drain, time of Redis, milliseconds. */
  drainUntilMs?: Integer;
  /**
   * Time of Redis before which the server takes no new leases, milliseconds: its engine was busy, or its calls failed.
   */
  busyUntilMs?: Integer;
  /**
   * Calls of the server got no tokens though its engine answers: it gets one call at a time until one of them has a
   * token.
   */
  hung?: true;
  /** Present only if the server is not probed. */
  probe?: false;
  /** Labels of the server, if it has any. */
  labels?: Labels;
  /** Capabilities of the engine; absent before they are probed. */
  capabilities?: EngineCapabilities;
  /** Last load report of the engine; absent if it reports none. For information; leases decide. */
  load?: ServerLoadReport;
  /** Start time that the engine reports, by its own clock, seconds; a later value is a restart. */
  engineStartedAtSeconds?: number;
  /** Weight version that the engine reports; -1: it has no number. When it changes, `weightVersion` follows. */
  engineWeightVersion?: Integer;
  /** Weight version before the failure of the server: `weightVersion` gets it again if the engine has not restarted. */
  unconfirmedWeightVersion?: Integer;
  /** Identity under which discovery lists its engine: the uid of its pod, or its own id; absent if it does not. */
  listedAs?: string;
  /**
   * The server gets no new leases because discovery does not list its engine as ready; its state is `cordoned` then.
   */
  withheld?: true;
  /**
   * The weights are unknown, so the server takes no leases: a change of weights ended at its deadline, and the server
   * was not reported since the change began. A report of the version ends this.
   */
  weightsUnknown?: true;
  /**
   * Weight version that does not count yet, so the server takes no leases: the engine has no salts and has not reset
   * its prefix cache since a report or a change of weights. The load-balancer asks for the reset at each probe while
   * no request runs on the server.
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
