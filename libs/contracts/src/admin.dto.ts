import { IsIn, IsOptional, Matches } from 'class-validator';
import type { NumberedPageReply } from './common.dto';
import type { ErrorCode, WireError } from './errors';
import { EVENT_TYPES, type EventType } from './events';
import { LIMITS } from './limits';
import { POOL_PATTERN } from './ids';
import { IsCorrelationId, IsCounter, IsId, IsList, IsName, IsWithin } from './rules';
import type { Integer, JobId, PoolName, RoundId, ServerId } from './scalars';

export const ROLES = ['client', 'trainer', 'viewer', 'operator', 'admin'] as const;
/**
 * Rights of a caller. `client`: generate through the gateway, nothing else. `trainer`: also call the operations of
 * trainers there, steer engines, add and remove them. `viewer`: read in admin-api, nothing else. `operator`: do all
 * this, and change what runs: servers, requests, rounds, queues, pauses. `admin`: also change configuration and tokens,
 * delete.
 */
export type Role = (typeof ROLES)[number];

/** True if the role has all rights of the other role. */
export function includesRole(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(other);
}

/** `pool.list`: the pools that have state in Redis and that the caller may use. */
export class ListPoolsRequest {}
export interface ListPoolsReply {
  /** The pools, sorted. */
  pools: PoolName[];
}

/** `identity.get`: who the caller is, by its token. */
export class GetIdentityRequest {}
export interface IdentityReply {
  /** Unique: id of a token, or subject of an issuer. */
  id: string;
  /** For people. */
  name: string;
  /** Rights of the caller. */
  role: Role;
  /** The pools the caller may use; absent: all pools. */
  pools?: PoolName[];
}

/** `token.create`: makes a bearer token. For a rotation, create the second token, then revoke the first. */
export class CreateTokenRequest {
  /** Who uses the token; the audit log has this name. Several tokens may have one name. */
  @IsName() name!: string;
  /** Rights of the token. */
  @IsIn(ROLES) role!: Role;
  /** The pools it is for; absent: all pools. */
  @IsOptional() @IsList(LIMITS.page) @Matches(POOL_PATTERN, { each: true }) pools?: PoolName[];
  /** Time until it expires, milliseconds; absent: it does not expire. */
  @IsOptional() @IsWithin(1_000, 315_360_000_000) expiresInMs?: Integer;
  /** Generations of the token at the same time, in each replica of the gateway; absent: no limit of its own. */
  @IsOptional() @IsWithin(1, 1_000_000) maxGenerations?: Integer;
  /** Requests of the token in a minute, to each replica of the gateway; absent: no limit. */
  @IsOptional() @IsWithin(1, 100_000_000) maxPerMinute?: Integer;
}
/** A token without its secret, which is stored as a hash only. */
export interface TokenStatus extends Pick<
  CreateTokenRequest,
  'name' | 'role' | 'pools' | 'maxGenerations' | 'maxPerMinute'
> {
  /** Id of the token. */
  tokenId: string;
  /** When it was made, milliseconds since 1970. */
  createdAtMs: Integer;
  /** When it expires, milliseconds since 1970; absent: never. */
  expiresAtMs?: Integer;
}
export interface CreateTokenReply extends TokenStatus {
  /** The token; it is shown only here. Send it as `Authorization: Bearer TOKEN`. */
  token: string;
}

/** `token.list`: all tokens, without their secrets. */
export class ListTokensRequest {}
export interface ListTokensReply {
  /** The tokens, oldest first. */
  tokens: TokenStatus[];
}

/** `token.revoke`: deletes a token. Every replica refuses it within five seconds. */
export class RevokeTokenRequest {
  /** Id of the token. */
  @IsId() tokenId!: string;
}
export interface RevokeTokenReply {
  /** False if there was no such token. */
  revoked: boolean;
}

/** `audit-log.list`: one page of the changes made through admin-api, oldest first. */
export class ListAuditLogRequest {
  /** Only changes of this pool. */
  @IsOptional() @Matches(POOL_PATTERN) pool?: PoolName;
  /** Only changes by this actor (`actorId`). */
  @IsOptional() @IsCorrelationId() actorId?: string;
  /** Only changes by this operation, for example `server.drain`. */
  @IsOptional() @IsName() operation?: string;
  /** Only changes since then, milliseconds since 1970. Default: a day before now. */
  @IsOptional() @IsCounter(0) sinceMs?: Integer;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(1) cursor?: Integer;
  /**
   * Maximum entries of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** One change made through admin-api, or refused. */
export interface AuditEntry {
  /** When it ended, milliseconds since 1970. */
  atMs: Integer;
  /** Id of the request, as in `X-Request-Id` and the logs. */
  requestId: string;
  /** Who: id of the token, or subject of the issuer. */
  actorId: string;
  /** Name of the token or subject. */
  actor: string;
  /** Role of the actor. */
  role: Role;
  /** Address of the caller. */
  address: string;
  /** The operation. */
  operation: string;
  /** The pool; absent for tokens. */
  pool?: PoolName;
  /** Fields of the request; absent if they are larger than 16 kB. */
  request?: Record<string, unknown>;
  /**
   * `done`, or the code of the error: then nothing was changed, unless the code is retryable. `FORBIDDEN`: the token
   * does not allow the change; at most 60 such entries of a token in an hour.
   */
  result: 'done' | ErrorCode;
  /** The state before, for operations that have a read of it. */
  before?: unknown;
  /** The state after, or the reply, without a secret; absent if it is larger than 16 kB, or was not read in time. */
  after?: unknown;
}
export interface ListAuditLogReply extends NumberedPageReply {
  /** The changes, oldest first. */
  entries: AuditEntry[];
}

/**
 * `pool.lost-changes`: changes that operators made in the 10 minutes before Redis was restarted or set back; empty 10
 * minutes later. Read the state of each, and make it again if it is lost.
 */
export class ListLostChangesRequest {}
export interface LostChangesReply {
  /** When Redis was restarted or set back, milliseconds since 1970. Absent: not in the last 10 minutes. */
  setBackAtMs?: Integer;
  /** The latest changes, at most 128, oldest first. */
  changes: AuditEntry[];
}

/**
 * `event.stream`: the events of a pool as server-sent events, from now on or after the header `Last-Event-ID`. `id` is
 * the place in the stream, `event` the type, `data` the event. A stream may end at any time, for example because its
 * reader is too slow: connect again with the last id.
 */
export class StreamEventsRequest {
  /** Only these types, for example `round.completed`. */
  @IsOptional() @IsList(64) @IsIn(EVENT_TYPES, { each: true }) type?: EventType[];
  /** Only events of this job. */
  @IsOptional() @IsId() job?: JobId;
  /** Only events of this round. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** Only events of this server. */
  @IsOptional() @IsId() serverId?: ServerId;
}

/** Body of every error of admin-api, `application/problem+json` (RFC 9457). */
export interface Problem extends Omit<WireError, 'message'> {
  /** URI of the kind of error, `urn:broomwagon:error:<code>`. */
  type: string;
  /** Meaning of the code. */
  title: string;
  /** HTTP status. */
  status: Integer;
  /** Explanation of this error, as text. */
  detail: string;
  /** Id of the request, as in the header `X-Request-Id`, the logs and the audit log. */
  instance: string;
}
