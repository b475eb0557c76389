import { Type } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsUrl,
  Matches,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import { EngineCapabilities } from './capabilities.dto';
import { IsScanCursor } from './cursors';
import { IsEpoch } from './epochs';
import { IsCorrelationId, IsId, type ServerId, type WorkerId, type Epoch } from './ids';
import { IsCounter, type Integer } from './integers';
import { IsLabels, type Labels } from './labels';

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
 * States of a server (architecture: State). Only `ready` ones are given new leases. `pending`: registered, and neither
 * has it answered a probe nor sent a heartbeat yet; it stays so while its engine loads.
 */
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * `server.register`: idempotent. Another (or an unknown) instanceId is a new epoch: old leases and sessions are
 * expired, and the server is `pending` until it answers a probe (the call waits for the first one, a second at most) or
 * sends a heartbeat. The same instanceId changes what describes the server and never its state.
 */
export class RegisterServerRequest {
  /** Id of the server, chosen by who registers it. */
  @IsId() serverId!: ServerId;
  /** Base URL of the engine. */
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  @MaxLength(512)
  @Matches(/^[!-~]+$/, { message: 'endpoint must be plain ASCII, other characters percent-encoded' })
  endpoint!: string;
  /** API of the engine. */
  @IsIn(ENGINE_DIALECTS) dialect!: EngineDialect;
  /** Identity of this start of the engine; absent counts as restarted. */
  @IsOptional() @IsCorrelationId() instanceId?: string;
  /** Model of the engine, passed on to callers. */
  @IsOptional() @MaxLength(256) model?: string;
  /** Most leases at once. */
  @IsInt() @Min(1) @Max(1_000_000) maxInflight!: Integer;
  /**
   * Relative capacity: load counts as leases / weight.
   * @default 1
   */
  @IsOptional() @IsNumber({ allowNaN: false, allowInfinity: false }) @Min(0.001) @Max(1_000) weight?: number;
  /** Version of the weights the engine has; absent = unknown. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** What an acquire may ask for, e.g. a zone or a GPU type. */
  @IsOptional() @IsLabels() labels?: Labels;
  /** What the engine can do; absent = the load-balancer asks it. */
  @IsOptional() @ValidateNested() @Type(() => EngineCapabilities) capabilities?: EngineCapabilities;
  /**
   * False for an engine that only its callers can reach: it is not probed and counts as answering.
   * @default true
   */
  @IsOptional() @IsBoolean() probe?: boolean;
}
/** Part of the reply to a call that says which weights a server has. */
export interface WeightVersionReply {
  /**
   * The engine has not emptied its prefix cache, so its server stays one of the older weights: say the version again.
   */
  weightVersionTaken?: false;
}
export interface RegisterServerReply extends WeightVersionReply {
  serverId: ServerId;
  /** Epoch of the server now. */
  epoch: Epoch;
  /** State of the server now. */
  state: ServerState;
}

/** `server.heartbeat`: keeps a server ready; for sidecars. The load-balancer also probes endpoints itself. */
export class ServerHeartbeatRequest {
  @IsId() serverId!: ServerId;
  /** Epoch that the registration answered. */
  @IsEpoch() epoch!: Epoch;
  /** The weights the engine has now; absent = as it was. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
}
export interface ServerHeartbeatReply extends WeightVersionReply {
  /** State of the server now. */
  state: ServerState;
  /** The weights a server must have to take leases; with others it is `quarantined`. Absent: any will do. */
  requiredWeightVersion?: Integer;
}

/** `server.update`: what is absent stays. Leases, sessions and epoch stay too. SERVER_NOT_FOUND for an unknown one. */
export class UpdateServerRequest {
  @IsId() serverId!: ServerId;
  /** Below the leases it has it only keeps new ones away. */
  @IsOptional() @IsInt() @Min(1) @Max(1_000_000) maxInflight?: Integer;
  /** Relative capacity: load counts as leases / weight. */
  @IsOptional() @IsNumber({ allowNaN: false, allowInfinity: false }) @Min(0.001) @Max(1_000) weight?: number;
  /** The weights the engine has now. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** All labels anew. */
  @IsOptional() @IsLabels() labels?: Labels;
}
/**
 * `server.drain`: no new leases; removed with the last one, or at the deadline with all that still run (their holders
 * are told by `worker.sync`). A repeat can only bring the deadline forward.
 */
export class DrainServerRequest {
  @IsId() serverId!: ServerId;
  /** From now, milliseconds; at most 7 days. */
  @IsInt() @Min(0) @Max(604_800_000) deadlineMs!: Integer;
}
/** `server.cordon`: no new leases; those it has run on. Outlives a restart of the engine. */
export class CordonServerRequest {
  @IsId() serverId!: ServerId;
}
/** `server.uncordon`: ends a cordon, and a drain that has not ended. */
export class UncordonServerRequest {
  @IsId() serverId!: ServerId;
}
export interface ServerChangeReply extends WeightVersionReply {
  serverId: ServerId;
  /** Epoch of the server now. */
  epoch: Epoch;
  /** State of the server now. */
  state: ServerState;
  /** Leases now. */
  inflight: Integer;
  /** Most leases now: below maxInflight in slow start, or under adaptive concurrency. */
  capacity: Integer;
  /** When a drain ends at the latest, server time, milliseconds. */
  drainUntilMs?: Integer;
}

/**
 * `server.fence`: the epoch is expired as if the engine had failed, for one that no longer does what it is told. Its
 * leases and sessions are expired and late releases change nothing; it stays `failed` until it registers with another
 * instanceId.
 */
export class FenceServerRequest {
  @IsId() serverId!: ServerId;
  /** The epoch that is meant: another one is left alone. */
  @IsEpoch() epoch!: Epoch;
  /** For the log and the event. */
  @IsOptional() @MaxLength(256) reason?: string;
}
export interface FenceServerReply {
  serverId: ServerId;
  /** False when that epoch is not the current one. */
  changed: boolean;
  /** As they are now. */
  epoch: Epoch;
  /** State of the server. */
  state: ServerState;
}

/**
 * `server.reconcile`: has the leases of a server proven by their holders, when they drift from what its engine has in
 * hand. Leases of expired worker epochs are returned at once; live holders are asked for a `worker.sync` by the reply
 * of their next heartbeat, and return what they do not hold. SERVER_NOT_FOUND, FENCED.
 */
export class ReconcileServerRequest {
  @IsId() serverId!: ServerId;
  /** Only while this is its epoch. */
  @IsOptional() @IsEpoch() epoch?: Epoch;
  /** Of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
/** A live worker epoch with leases on the server, which is asked for a sync. */
export interface LeaseHolder {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Of this page. */
  leases: Integer;
}
export interface ReconcileServerReply {
  /** All leases of the server now. */
  leases: Integer;
  /** Requests its engine said it has in hand; these four are absent when it says nothing of its load. */
  engineRunning?: Integer;
  /** Requests that wait in its engine. */
  engineWaiting?: Integer;
  /** Of what the engine said: an old report explains a drift. */
  reportAgeMs?: Integer;
  /** Leases less running and waiting requests. */
  drift?: Integer;
  /** Of this page of leases; one worker may come in several pages. */
  holders: LeaseHolder[];
  /** Leases of expired worker epochs in this page. */
  returned: Integer;
  /** Absent at the end. */
  cursor?: string;
}

/** `server.remove`: leases on it are expired at once; later releases change nothing. */
export class RemoveServerRequest {
  @IsId() serverId!: ServerId;
}
export interface RemoveServerReply {
  /** False when there was no such server. */
  removed: boolean;
}

/** `server.list`: one page of servers. */
export class ListServersRequest {
  /** Of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
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
  /** Model of the engine, if it was registered with one. */
  model?: string;
  /** Leases now. */
  inflight: Integer;
  /** Most leases at once. */
  maxInflight: Integer;
  /** Relative capacity: load counts as leases / weight. */
  weight: number;
  /** Version of its weights. */
  weightVersion: Integer;
  /** Since its engine answered a probe or sent a heartbeat, milliseconds. */
  heartbeatAgeMs: Integer;
  /** Most leases now: below maxInflight in slow start, or under adaptive concurrency. */
  capacity: Integer;
  /** When a drain ends at the latest, server time, milliseconds. */
  drainUntilMs?: Integer;
  /** Only of one that is not probed. */
  probe?: false;
  /** Its labels, if it has any. */
  labels?: Labels;
  /** What the engine can do; absent when nobody has found out yet. */
  capabilities?: EngineCapabilities;
  /** What the engine said of its load; absent when it says nothing. The leases are the truth. */
  load?: ServerLoadReport;
  /** When its engine says it has started, its own time, seconds; a later one is a restart. */
  engineStartedAtSeconds?: number;
  /** The engine's own word for its weights, -1: it has no number for them. When it changes, `weightVersion` follows. */
  engineWeightVersion?: Integer;
  /**
   * The weights it had when it failed: it has them again (`weightVersion`) if its engine turns out not to have
   * restarted.
   */
  unconfirmedWeightVersion?: Integer;
}
/** A load report of an engine. */
export interface ServerLoadReport {
  /** Requests that the engine runs. */
  running: Integer;
  /** Requests that wait in the engine. */
  waiting: Integer;
  /** KV cache in use, 0 to 1. */
  kvUse?: number;
  /** Since the engine started. */
  preemptions?: Integer;
  /** Since the report, milliseconds. */
  ageMs: Integer;
}
export interface ListServersReply {
  /** The page. */
  servers: ServerStatus[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
}
