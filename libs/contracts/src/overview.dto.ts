import type { LoadBalancerStatus } from './lb.dto';
import type { ReadinessReply } from './readiness.dto';
import type { BlockedReason, RoundStatus } from './round.dto';
import type { Integer, JobId, PoolName, RoundId, ServerId } from './scalars';
import type { ServerState } from './server.dto';

/**
 * `pool.overview`: whether anything is wrong in a pool, and what to do. All numbers are of one moment. A part that does
 * not answer is in `unread`, and its fields are absent: no number is 0 because there is no answer.
 */
export class GetOverviewRequest {}

export const OVERVIEW_PARTS = ['services', 'pool', 'servers', 'jobs', 'redis'] as const;
/** A part of the overview, with the service that answers: any, load-balancer, load-balancer, coordinator, Redis. */
export type OverviewPart = (typeof OVERVIEW_PARTS)[number];
/** A part that has not answered. */
export interface UnreadPart {
  /** The part. */
  part: OverviewPart;
  /** Code of the error. */
  code: string;
  /** Why there is no answer, as text. */
  reason: string;
}
/** Something that is wrong, with its place, its runbook and advice. */
export interface OverviewAlarm {
  /** Name of the section of docs/operations/alerts.md about the problem. */
  runbook: string;
  /** `critical`: work stands still. `warning`: work is slower, or will stand still. */
  severity: 'critical' | 'warning';
  /** What is wrong, as one sentence. */
  message: string;
  /** What to do, as one sentence. */
  advice: string;
  /** Start of the problem, milliseconds since 1970; absent if unknown. */
  sinceMs?: Integer;
  /** The servers, at most 16. */
  serverIds?: ServerId[];
  /** Job of the round. */
  job?: JobId;
  /** The round. */
  roundId?: RoundId;
}
/** The round of a job that is not closed. */
export interface OpenRound extends Pick<
  RoundStatus,
  'roundId' | 'step' | 'kind' | 'state' | 'openedAtMs' | 'completedAtMs' | 'acceptedGroups' | 'neededGroups'
> {
  job: JobId;
  /** Time since the opening, until the completion if the round is completed, milliseconds. */
  ageMs: Integer;
  /** Median of this time over the last rounds of its kind, milliseconds; absent without such rounds. */
  medianMs?: Integer;
  /** Why no request of the round runs; absent if the round is not blocked. */
  blockedReason?: BlockedReason;
}
/** Memory of Redis, of the fullest primary of a Cluster. */
export interface RedisMemoryUse {
  /** Bytes in use, as they count against the limit. */
  usedBytes: Integer;
  /** `maxmemory`; absent: no limit. */
  maxBytes?: Integer;
}
export interface OverviewReply extends Partial<
  Pick<LoadBalancerStatus, 'paused' | 'pausedUntilMs' | 'leases' | 'waiters' | 'workers' | 'sessions'>
> {
  pool: PoolName;
  /** When the numbers were read, milliseconds since 1970. */
  atMs: Integer;
  /** Alarms, the worst first. Nothing is wrong if both this list and `unread` are empty. */
  alarms: OverviewAlarm[];
  /** Parts that have not answered. */
  unread: UnreadPart[];
  /** Number of servers in each state that a server has. */
  serversByState?: Partial<Record<ServerState, Integer>>;
  /** The rounds that are not closed, of the first 16 jobs with such a round. */
  rounds?: OpenRound[];
  /** The replicas that have answered. */
  services?: ReadinessReply[];
  redis?: RedisMemoryUse;
}
