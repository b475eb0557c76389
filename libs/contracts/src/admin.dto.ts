import { IsIn, IsOptional, Matches } from 'class-validator';
import { JobRequest, type NumberedPageReply, type PageReply } from './common.dto';
import type { ErrorCode, WireError } from './errors';
import { EVENT_TYPES, type EventType, type PoolEvent } from './events';
import { LIMITS } from './limits';
import { POOL_PATTERN } from './ids';
import { IsCorrelationId, IsCounter, IsId, IsList, IsName, IsWithin } from './rules';
import type { RoundStatus } from './round.dto';
import type { GroupId, Integer, JobId, PoolName, RoundId, ServerId } from './scalars';

export const ROLES = ['client', 'trainer', 'viewer', 'operator', 'admin'] as const;
/**
 * Rights of a caller. `client`: only generate through the gateway. `trainer`: also call the operations of trainers in
 * the gateway, and steer, add and remove engines. `viewer`: only read in admin-api. `operator`: all this, and change
 * servers, requests, rounds, queues and pauses. `admin`: also change configuration and tokens, and delete.
 */
export type Role = (typeof ROLES)[number];

/** True if the role has all rights of the other role. */
export function includesRole(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(other);
}

/** `pool.list`: the pools that have state in Redis and that the caller may use. */
export class ListPoolsRequest {
  /** Cursor of the previous page. */
  @IsOptional() @Matches(POOL_PATTERN) cursor?: string;
  /** Maximum pools of the page; absent: all of them. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
export interface ListPoolsReply extends PageReply {
  /** The pools, sorted. */
  pools: PoolName[];
}

/** `identity.get`: identity and rights of the caller. */
export class GetIdentityRequest {}
export interface IdentityReply {
  /** Unique: id of a token, or subject of an issuer. */
  id: string;
  /** Name of the caller, for people. */
  name: string;
  /** Rights of the caller. */
  role: Role;
  /** The pools the caller may use; absent: all pools. */
  pools?: PoolName[];
}

/** `token.create`: makes a bearer token. For a rotation, create the second token, then revoke the first. */
export class CreateTokenRequest {
  /** Name of the user of the token, as in the audit log. Several tokens may have one name. */
  @IsName() name!: string;
  /** Rights of the token. */
  @IsIn(ROLES) role!: Role;
  /** Pools of the token; absent: all pools. */
  @IsOptional() @IsList(LIMITS.page) @Matches(POOL_PATTERN, { each: true }) pools?: PoolName[];
  /** Time until the token expires, milliseconds; absent: never. */
  @IsOptional() @IsWithin(1_000, 315_360_000_000) expiresInMs?: Integer;
  /**
   * Maximum responses that one replica of the gateway generates for the token at the same time; absent: no separate
   * limit.
   */
  @IsOptional() @IsWithin(1, 1_000_000) maxGenerations?: Integer;
  /** Maximum requests of the token in a minute to one replica of the gateway; absent: no limit. */
  @IsOptional() @IsWithin(1, 100_000_000) maxPerMinute?: Integer;
}
/** A token without its secret, which is stored as a hash only. */
export interface TokenStatus extends Pick<
  CreateTokenRequest,
  'name' | 'role' | 'pools' | 'maxGenerations' | 'maxPerMinute'
> {
  /** Id of the token. */
  tokenId: string;
  /** When the token was created, milliseconds since 1970. */
  createdAtMs: Integer;
  /** When the token expires, milliseconds since 1970; absent: never. */
  expiresAtMs?: Integer;
}
export interface CreateTokenReply extends TokenStatus {
  /** The token, which no other reply has. Send the token as `Authorization: Bearer TOKEN`. */
  token: string;
}

/** `token.get`: one token, without its secret. Errors: TOKEN_NOT_FOUND. */
export class GetTokenRequest {
  /** Id of the token. */
  @IsId() tokenId!: string;
}

/** `token.list`: all tokens, without their secrets. */
export class ListTokensRequest {
  /** Cursor of the previous page. */
  @IsOptional() @Matches(/^\d{14}-\w{1,64}$/) cursor?: string;
  /** Maximum tokens of the page; absent: all of them. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
export interface ListTokensReply extends PageReply {
  /** The tokens, oldest first. */
  tokens: TokenStatus[];
}

/** `token.revoke`: deletes a token. Every replica refuses the token within five seconds. */
export class RevokeTokenRequest {
  /** Id of the token. */
  @IsId() tokenId!: string;
}
export interface RevokeTokenReply {
  /** False if the token is unknown. */
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
  /** When the change ended, milliseconds since 1970. */
  atMs: Integer;
  /** Id of the request, as in `X-Request-Id` and the logs. */
  requestId: string;
  /** Id of the actor: id of a token, or subject of an issuer. */
  actorId: string;
  /** Name of the token or subject. */
  actor: string;
  /** Role of the actor. */
  role: Role;
  /** Address of the caller. */
  address: string;
  /** Name of the operation, for example `server.register`. */
  operation: string;
  /** Pool of the change, if any. */
  pool?: PoolName;
  /** Fields of the request; absent if the request is larger than 16 kB. */
  request?: Record<string, unknown>;
  /**
   * `done`, or the code of the error. With a code that is not retryable, nothing was changed. `FORBIDDEN`: the token
   * does not allow the change; a token has at most 60 such entries in an hour.
   */
  result: 'done' | ErrorCode;
  /** State before the change; absent if there is no operation that reads it. */
  before?: unknown;
  /** State after the change, or the reply, without secrets; absent if larger than 16 kB, or not read in time. */
  after?: unknown;
}
export interface ListAuditLogReply extends NumberedPageReply {
  /** The changes, oldest first. */
  entries: AuditEntry[];
}

/**
 * `pool.lost-changes`: changes that operators made in the 10 minutes before Redis was restarted or set back; empty 10
 * minutes later. Check whether each change is still in force, and repeat a lost change.
 */
export class ListLostChangesRequest {
  /** Maximum changes, the latest; absent: all of them. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
export interface LostChangesReply {
  /**
   * When Redis was restarted or set back, milliseconds since 1970; absent if this happened more than 10 minutes ago.
   */
  setBackAtMs?: Integer;
  /** The latest changes, at most 128, oldest first. */
  changes: AuditEntry[];
}

/**
 * `event.stream`: the events of a pool as server-sent events, from now on or after the header `Last-Event-ID`. `id` is
 * the place in the stream, `event` the type, `data` the event. A stream may end at any time, for example for a slow
 * reader: then connect again with the last id.
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

/**
 * `event.list`: one page of the stored events of a pool, oldest first. The stream of events keeps them for
 * `EVENTS_STREAM_MAX_AGE_MS`.
 */
export class ListEventsRequest extends StreamEventsRequest {
  /** Only events since then, milliseconds since 1970. Default: a day before now. */
  @IsOptional() @IsCounter(0) sinceMs?: Integer;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(1) cursor?: Integer;
  /**
   * Maximum events of the page.
   * @default 512
   */
  @IsOptional() @IsWithin(1, 512) limit?: Integer;
}
/** An event with its place in the stream. */
export interface StoredEvent {
  /** Place in the stream, as `id` of `event.stream`. */
  id: Integer;
  event: PoolEvent;
}
export interface ListEventsReply extends NumberedPageReply {
  /** The events of the page. A page may be empty and have a cursor. */
  events: StoredEvent[];
}

/**
 * `request.totals`: what an action would stop, for a confirmation: the requests on a server, of a round or of a group.
 * Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND, GROUP_NOT_FOUND, SERVER_NOT_FOUND.
 */
export class RequestTotalsRequest {
  /** The requests on this server. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** The requests of a round of this job that have not ended. */
  @IsOptional() @IsId() job?: JobId;
  /** The round, with `job`. Default: the round that is not closed, or the last round. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** The group, with `job`, in any round or in the long-tail queue. */
  @IsOptional() @IsId() groupId?: GroupId;
}
export interface RequestTotalsReply {
  /** Number of requests. */
  requests: Integer;
  /** Tokens that the requests have generated so far. */
  tokens: Integer;
  /** Requests without a job, such as calls of the gateway: their tokens are not known and not counted. */
  withoutTokens: Integer;
  /** True if only the first 65,536 requests of a round, or 1,024 of a server, were read. */
  isPartial?: true;
}

/** `round.history`: the rounds of a job that the stream of events has, also those without a summary (`round.list`). */
export class RoundHistoryRequest extends JobRequest {
  /** Maximum rounds; absent: 1,024. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** A round as its events describe it. */
export interface PastRound
  extends
    Pick<RoundStatus, 'roundId' | 'step'>,
    Partial<Pick<RoundStatus, 'kind' | 'neededGroups' | 'acceptedGroups' | 'openedAtMs' | 'completedAtMs'>> {
  /** Last state that an event has told. */
  state: 'open' | 'completed' | 'closed' | 'cancelled';
}
export interface RoundHistoryReply {
  /** The last rounds, latest first. */
  rounds: PastRound[];
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
