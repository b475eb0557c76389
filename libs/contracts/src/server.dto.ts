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
import { IsCounter } from './integers';
import { IsLabels, type Labels } from './labels';

export const ENGINE_DIALECTS = ['vllm', 'sglang', 'openai'] as const;
export type EngineDialect = (typeof ENGINE_DIALECTS)[number];

/**
 * States of a server (architecture: State). Only `ready` ones are given new leases. `pending`: registered, and neither
 * has it answered a probe nor sent a heartbeat yet; it stays so while its engine loads.
 */
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
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * `server.register`: idempotent. Another (or an unknown) instanceId is a new epoch: old leases and sessions are expired, and
 * the server is `pending` until it answers a probe (the call waits for the first one, a second at most) or sends a
 * heartbeat. The same instanceId changes what describes the server and never its state.
 */
export class RegisterServerRequest {
  @IsId() serverId!: ServerId;
  /** Base URL of the engine. */
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  @MaxLength(512)
  @Matches(/^[!-~]+$/, { message: 'endpoint must be plain ASCII, other characters percent-encoded' })
  endpoint!: string;
  @IsIn(ENGINE_DIALECTS) dialect!: EngineDialect;
  /** Identity of this start of the engine; absent counts as restarted. */
  @IsOptional() @IsCorrelationId() instanceId?: string;
  @IsOptional() @MaxLength(256) model?: string;
  /** Most leases at once. */
  @IsInt() @Min(1) @Max(1_000_000) maxInflight!: number;
  /** Relative capacity: load counts as leases / weight. */
  @IsOptional() @IsNumber({ allowNaN: false, allowInfinity: false }) @Min(0.001) @Max(1_000) weight?: number;
  @IsOptional() @IsCounter(0) weightVersion?: number;
  /** What an acquire may ask for, e.g. a zone or a GPU type. */
  @IsOptional() @IsLabels() labels?: Labels;
  /** What the engine can do; absent = the load-balancer asks it. */
  @IsOptional() @ValidateNested() @Type(() => EngineCapabilities) capabilities?: EngineCapabilities;
  /** False for an engine that only its callers can reach: it is not probed and counts as answering. Default true. */
  @IsOptional() @IsBoolean() probe?: boolean;
}
/** Part of the reply to a call that says which weights a server has. */
export interface WeightVersionReply {
  /** The engine has not emptied its prefix cache, so its server stays one of the older weights: say the version again. */
  weightVersionTaken?: false;
}
export interface RegisterServerReply extends WeightVersionReply {
  serverId: ServerId;
  epoch: Epoch;
  state: ServerState;
}

/** `server.heartbeat`: keeps a server ready; for sidecars. The load-balancer also probes endpoints itself. */
export class ServerHeartbeatRequest {
  @IsId() serverId!: ServerId;
  @IsEpoch() epoch!: Epoch;
  /** The weights the engine has now; absent = as it was. */
  @IsOptional() @IsCounter(0) weightVersion?: number;
}
export interface ServerHeartbeatReply extends WeightVersionReply {
  state: ServerState;
  /** The weights a server must have to take leases; with others it is `quarantined`. Absent: any will do. */
  requiredWeightVersion?: number;
}

/** `server.update`: what is absent stays. Leases, sessions and epoch stay too. SERVER_NOT_FOUND for an unknown one. */
export class UpdateServerRequest {
  @IsId() serverId!: ServerId;
  /** Below the leases it has it only keeps new ones away. */
  @IsOptional() @IsInt() @Min(1) @Max(1_000_000) maxInflight?: number;
  @IsOptional() @IsNumber({ allowNaN: false, allowInfinity: false }) @Min(0.001) @Max(1_000) weight?: number;
  @IsOptional() @IsCounter(0) weightVersion?: number;
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
  @IsInt() @Min(0) @Max(604_800_000) deadlineMs!: number;
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
  epoch: Epoch;
  state: ServerState;
  /** Leases now. */
  inflight: number;
  /** Most leases now: below maxInflight in slow start, or under adaptive concurrency. */
  capacity: number;
  /** When a drain ends at the latest, server time, milliseconds. */
  drainUntilMs?: number;
}

/**
 * `server.fence`: the epoch is expired as if the engine had failed, for one that no longer does what it is told. Its leases
 * and sessions are expired and late releases change nothing; it stays `failed` until it registers with another instanceId.
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
  state: ServerState;
}

/**
 * `server.reconcile`: has the leases of a server proven by their holders, when they drift from what its engine has in
 * hand. Leases of expired worker epochs are returned at once; live holders are asked for a `worker.sync` by the reply of
 * their next heartbeat, and return what they do not hold. SERVER_NOT_FOUND, FENCED.
 */
export class ReconcileServerRequest {
  @IsId() serverId!: ServerId;
  /** Only while this is its epoch. */
  @IsOptional() @IsEpoch() epoch?: Epoch;
  @IsOptional() @IsScanCursor() cursor?: string;
}
/** A live worker epoch with leases on the server, which is asked for a sync. */
export interface LeaseHolder {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Of this page. */
  leases: number;
}
export interface ReconcileServerReply {
  /** All leases of the server now. */
  leases: number;
  /** Requests its engine said it has in hand; these four are absent when it says nothing of its load. */
  engineRunning?: number;
  engineWaiting?: number;
  /** Of what the engine said: an old report explains a drift. */
  reportAgeMs?: number;
  /** Leases less running and waiting requests. */
  drift?: number;
  /** Of this page of leases; one worker may come in several pages. */
  holders: LeaseHolder[];
  /** Leases of expired worker epochs in this page. */
  returned: number;
  /** Absent at the end. */
  cursor?: string;
}

/** `server.remove`: leases on it are expired at once; later releases change nothing. */
export class RemoveServerRequest {
  @IsId() serverId!: ServerId;
}
export interface RemoveServerReply {
  removed: boolean;
}

/** `server.list`: one page of servers. */
export class ListServersRequest {
  @IsOptional() @IsScanCursor() cursor?: string;
}
export interface ServerStatus {
  serverId: ServerId;
  epoch: Epoch;
  state: ServerState;
  endpoint: string;
  dialect: EngineDialect;
  model?: string;
  inflight: number;
  maxInflight: number;
  weight: number;
  weightVersion: number;
  heartbeatAgeMs: number;
  /** Most leases now: below maxInflight in slow start, or under adaptive concurrency. */
  capacity: number;
  /** When a drain ends at the latest, server time, milliseconds. */
  drainUntilMs?: number;
  /** Only of one that is not probed. */
  probe?: false;
  labels?: Labels;
  /** What the engine can do; absent when nobody has found out yet. */
  capabilities?: EngineCapabilities;
  /** What the engine said of its load; absent when it says nothing. The leases are the truth. */
  load?: ServerLoadReport;
  /** When its engine says it has started, its own time, seconds; a later one is a restart. */
  engineStartedAtSeconds?: number;
  /** The engine's own word for its weights, -1: it has no number for them. When it changes, `weightVersion` follows. */
  engineWeightVersion?: number;
  /** The weights it had when it failed: it has them again (`weightVersion`) if its engine turns out not to have restarted. */
  unconfirmedWeightVersion?: number;
}
/** A load report of an engine. */
export interface ServerLoadReport {
  running: number;
  waiting: number;
  /** KV cache in use, 0 to 1. */
  kvUse?: number;
  /** Since the engine started. */
  preemptions?: number;
  ageMs: number;
}
export interface ListServersReply {
  servers: ServerStatus[];
  cursor?: string;
}
