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
  'waited',
  'repeated',
] as const;
/** The rule that chose a server. */
export type DecisionBranch = (typeof DECISION_BRANCHES)[number];
/** A server and its rank. */
export interface RankedServer {
  serverId: ServerId;
  /** Load key before the choice, in the unit of the policy; the lowest is chosen. */
  key: number;
}
/** How a server was chosen. */
export interface Decision {
  /** Routing policy of the pool. */
  policy: RoutingPolicy;
  /** The rule that chose the server. */
  branch: DecisionBranch;
  /** Leases of the chosen server, this one included. */
  inflight: Integer;
  /** For an acquire that waited, or whose `boundServerId` could not take it: the branch that chose the server. */
  via?: DecisionBranch;
  /** Version of the pool's settings. */
  policyVersion?: Integer;
  /** Load key of the chosen server before the choice, in the unit of the policy. */
  key?: number;
  /**
   * The first four servers in the order of the policy that meet the constraints, with their keys; for consistent-hash
   * one.
   */
  best?: RankedServer[];
  /** Number of servers with room, before constraints. */
  eligible?: Integer;
  /** All input of the choice, if requested by `explain` or sampled. */
  snapshot?: DecisionSnapshot;
}
/** State of a server at the time of the choice. */
export interface SnapshotServer extends Pick<ServerStatus, 'serverId' | 'weight' | 'weightVersion' | 'labels'> {
  /** Number of its leases. */
  leases: Integer;
  /** Has room for one more lease. */
  hasRoom: boolean;
  /** Sequence of the last lease that chose it, modulo 2^32; 0 = never. */
  chosen: Integer;
  /** Context tokens of its leases (at least 256 each) and its reported uncached tokens; only for `least-tokens`. */
  tokens?: Integer;
  /** Bound sessions, and leases without a session; only for `least-sessions`. */
  sessions?: Integer;
  /** Next turn of the server; only for `round-robin`. */
  turn?: Integer;
  /** Capabilities that its engine is known to lack. */
  lacks?: EngineFeature[];
  /** The engine does not list the model that the acquire names. */
  lacksModel?: true;
  /** Reported KV use, 0 to 1. */
  kvUse?: number;
  /** Leases of the group of the acquire. */
  groupLeases?: Integer;
}
/** All input of a choice: `replayDecision` repeats the choice. */
export interface DecisionSnapshot {
  /** Settings of the pool. */
  settings: PoolSettings;
  /** The fields of the acquire that affect the choice. */
  request: Omit<AcquireItem, 'waitMs' | 'priority' | 'explain'>;
  /** Server of the session, if it is still usable. */
  boundTo?: ServerId;
  /** Server of `boundServerId`, if it could take the lease. */
  namedServer?: ServerId;
  /** Newest weight version of the servers that take leases. */
  newestWeightVersion: Integer;
  /** The first 128 servers in the order of the policy, the bound one and the chosen one. */
  servers: SnapshotServer[];
  /** There were more servers than are listed. */
  truncated?: boolean;
}
/** `lb.decisions`: one page of recent choices, latest first. */
export class DecisionsRequest {
  /** Cursor of the previous page. */
  @IsOptional() @Matches(/^\d{1,16}$/, { message: 'cursor is not a cursor of lb.decisions' }) cursor?: string;
  /** Maximum entries of the page, at most 128 (default), or 16 with snapshots. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
  /** Only decisions with a snapshot, which are stored separately. */
  @IsOptional() @IsBoolean() full?: boolean;
}
/** One recorded choice. */
export interface DecisionRecord {
  /** Sequence of the choice: the sequence of the lease, or a separate one for a transfer. */
  seq: Integer;
  /** The acquire of the choice. */
  acquireId: string;
  serverId: ServerId;
  /** When the choice was made, milliseconds since 1970. */
  decidedAtMs: Integer;
  /** The choice. */
  decision: Decision;
}
export interface DecisionsReply extends PageReply {
  /** The choices, latest first. */
  decisions: DecisionRecord[];
}
