import { IsIn, IsInt, IsNumber, IsObject, IsOptional, IsUrl, Max, MaxLength, Min } from 'class-validator';
import { IsCorrelationId, IsId, type ServerId } from './ids';

export const ENGINE_DIALECTS = ['vllm', 'sglang', 'openai'] as const;
export type EngineDialect = (typeof ENGINE_DIALECTS)[number];

/** States of a server (architecture: State). Only `ready` ones are given new leases. */
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

/** `server.register`: idempotent. Another (or an unknown) instanceId is a new epoch: old leases and sessions are void. */
export class RegisterServerRequest {
  @IsId() serverId!: ServerId;
  /** Base URL of the engine. */
  @IsUrl({ require_tld: false, protocols: ['http', 'https'], require_protocol: true })
  @MaxLength(2_048)
  endpoint!: string;
  @IsIn(ENGINE_DIALECTS) dialect!: EngineDialect;
  /** Identity of this start of the engine; absent counts as restarted. */
  @IsOptional() @IsCorrelationId() instanceId?: string;
  @IsOptional() @MaxLength(256) model?: string;
  /** Most leases at once. */
  @IsInt() @Min(1) @Max(1_000_000) maxInflight!: number;
  /** Relative capacity: load counts as leases / weight. */
  @IsOptional() @IsNumber({ allowNaN: false, allowInfinity: false }) @Min(0.001) @Max(1_000) weight?: number;
  @IsOptional() @IsInt() @Min(0) weightVersion?: number;
  /** What the probe of the engine found (libs/engines); opaque here. */
  @IsOptional() @IsObject() capabilities?: Record<string, unknown>;
}
export interface RegisterServerReply {
  serverId: ServerId;
  epoch: number;
  state: ServerState;
}

/** `server.heartbeat`: keeps a server ready; for sidecars. The load-balancer also probes endpoints itself. */
export class ServerHeartbeatRequest {
  @IsId() serverId!: ServerId;
  @IsInt() @Min(1) epoch!: number;
}
export interface ServerHeartbeatReply {
  state: ServerState;
}

/** `server.remove`: leases on it are void at once; later releases change nothing. */
export class RemoveServerRequest {
  @IsId() serverId!: ServerId;
}
export interface RemoveServerReply {
  removed: boolean;
}

/** `server.list`: one page of servers. */
export class ListServersRequest {
  @IsOptional() @MaxLength(256) cursor?: string;
}
export interface ServerStatus {
  serverId: ServerId;
  epoch: number;
  state: ServerState;
  endpoint: string;
  dialect: EngineDialect;
  model?: string;
  inflight: number;
  maxInflight: number;
  weight: number;
  weightVersion: number;
  heartbeatAgeMs: number;
}
export interface ListServersReply {
  servers: ServerStatus[];
  cursor?: string;
}
