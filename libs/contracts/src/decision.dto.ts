import { type PageReply } from './common.dto';
import { IsBoolean, IsOptional, Matches } from 'class-validator';
import type { AcquireItem } from './acquire.dto';
import type { EngineFeature } from './capabilities.dto';
import { LIMITS } from './limits';
import type { PoolSettings, RoutingPolicy } from './pool.dto';
import type { ServerStatus } from './server.dto';
import { IsWithin } from './rules';
import type { Integer, ServerId } from './scalars';

export const DECISION_BRANCHES = [
  'sticky-hit',
  'sticky-broken',
  'least-loaded',
  'tie',
  'round-robin',
  'hash',
  'group-spread',
  'group-affinity',
  'bound',
  'bound-unavailable',
  'transferred',
  'resumed',
  'admitted',
  'waited',
  'repeated',
] as const;
/** The rule that chose a server. */
export type DecisionBranch = (typeof DECISION_BRANCHES)[number];
/** A server and its load key. */
export interface RankedServer {
  serverId: ServerId;
  /** Load key before the choice, in the unit of the policy; lower is better. */
  key: number;
}
/** How a server was chosen. */
export interface Decision {
  /** Routing policy of the pool. */
  policy: RoutingPolicy;
  /** The rule that chose the server. */
  branch: DecisionBranch;
  /** Leases of the chosen server, with the new lease. */
  inflight: Integer;
  /** Branch that chose the server, for the branches `waited` and `bound-unavailable`. */
  via?: DecisionBranch;
  /** Version of the pool's settings. */
  policyVersion?: Integer;
  /** Load key of the chosen server before the choice, in the unit of the policy. */
  key?: number;
  /**
   * The first four servers with room in the order of the policy. A choice by load omits servers that do not meet the
   * constraints. A draw or hash has one server.
   */
  best?: RankedServer[];
  /** Number of servers with room, regardless of constraints. */
  eligible?: Integer;
  /** All input of the choice, for an acquire with `explain` or a sampled choice. */
  snapshot?: DecisionSnapshot;
}
/** State of a server at the time of the choice. */
export interface SnapshotServer extends Pick<ServerStatus, 'serverId' | 'weight' | 'weightVersion' | 'labels'> {
  /** Leases of the server. */
  leases: Integer;
  /** The server has room for one more lease. */
  hasRoom: boolean;
  /** Sequence of the last lease for which the server was chosen, modulo 2^32; 0 = never. */
  chosen: Integer;
  /**
   * Context tokens of the leases (at least 256 each) and uncached tokens that the engine reports; only for
   * `least-tokens`.
   */
  tokens?: Integer;
  /**
   * Thousandths of the KV memory that contexts of sessions and part of their expected growth use; only for `least-kv`.
   */
  kvShare?: Integer;
  /** Number of bound sessions and of leases without a session; only for `least-sessions`. */
  sessions?: Integer;
  /** Next turn of the server; only for `round-robin`. */
  turn?: Integer;
  /** Capabilities that the engine is known to lack. */
  lacks?: EngineFeature[];
  /** The engine does not list the model that the acquire names. */
  lacksModel?: true;
  /** Reported KV use, 0 to 1. */
  kvUse?: number;
  /** Leases of the acquire's group on this server. */
  groupLeases?: Integer;
}
/** All input of a choice, for `replayDecision`. */
export interface DecisionSnapshot {
  /** Settings of the pool. */
  settings: PoolSettings;
  /** The fields of the acquire that affect the choice. */
  request: Omit<AcquireItem, 'waitMs' | 'priority' | 'explain'>;
  /** Server of the session, if that server is still usable. */
  boundTo?: ServerId;
  /** Server of `boundServerId`, if that server could take the lease. */
  namedServer?: ServerId;
  /** Newest weight version of the servers that take leases. */
  newestWeightVersion: Integer;
  /** The first 128 servers in the order of the policy, the bound one and the chosen one. */
  servers: SnapshotServer[];
  /** The list `servers` is not complete. */
  truncated?: boolean;
}
/** `lb.decisions`: one page of recent choices, latest first. */
export class DecisionsRequest {
  /** Cursor of the previous page. */
  @IsOptional() @Matches(/^\d{1,16}$/, { message: 'cursor is not a cursor of lb.decisions' }) cursor?: string;
  /** Maximum entries of the page, at most 128 (default), or 16 with snapshots. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
  /** Only decisions with a snapshot. */
  @IsOptional() @IsBoolean() full?: boolean;
}
/** One recorded choice. */
export interface DecisionRecord {
  /** Sequence of the choice: the sequence of the lease; a transfer has a separate sequence. */
  seq: Integer;
  /** The acquire of the choice. */
  acquireId: string;
  serverId: ServerId;
  /** When the choice was made, milliseconds since 1970. */
  decidedAtMs: Integer;
  /** The choice and its reasons. */
  decision: Decision;
}
export interface DecisionsReply extends PageReply {
  /** The choices, latest first. */
  decisions: DecisionRecord[];
}
