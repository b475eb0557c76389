import { IsIn, IsOptional, Matches, ValidateBy } from 'class-validator';
import { POOL_PATTERN } from './ids';
import { LIMITS } from './limits';
import { IsCounter, IsDecimal, IsList, IsWithin } from './rules';
import type { Integer, PoolName } from './scalars';

export const ROUTING_POLICIES = [
  'least-inflight',
  'least-tokens',
  'least-sessions',
  'round-robin',
  'consistent-hash',
  'random',
  'power-of-two',
] as const;
/** How an acquire without a session gets its server. */
export type RoutingPolicy = (typeof ROUTING_POLICIES)[number];

export const GROUP_PLACEMENTS = ['group-spread', 'group-affinity', 'auto'] as const;
/** How the samples of a group are placed. */
export type GroupPlacement = (typeof GROUP_PLACEMENTS)[number];

const MAX_MARGIN = 1_000_000;

/** `never`, or an integer from 0 to {@link MAX_MARGIN}. */
function IsMargin(): PropertyDecorator {
  return ValidateBy({
    name: 'isMargin',
    constraints: [MAX_MARGIN],
    validator: {
      validate: (value: unknown) =>
        value === 'never' || (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_MARGIN),
      defaultMessage: () => `$property must be an integer from 0 to ${MAX_MARGIN}, or "never"`,
    },
  });
}

/** Settings of a pool, which can be changed while it runs. All replicas use them from the next call on. */
export class PoolSettings {
  /** Default `least-inflight`. */
  @IsOptional() @IsIn(ROUTING_POLICIES) policy?: RoutingPolicy;
  /**
   * A session leaves its server if that has more leases than the server that the policy would choose, plus this margin:
   * 0 to 1,000,000. `never` (the default): it stays under any load.
   */
  @IsOptional() @IsMargin() affinityBreakMargin?: number | 'never';
  /**
   * An acquire with more `contextTokens` than this stays, because another prefill would cost more. Unset = no limit.
   */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) affinityBreakMaxContextTokens?: Integer;
  /** Default `group-spread`. */
  @IsOptional() @IsIn(GROUP_PLACEMENTS) groupPlacement?: GroupPlacement;
  /** Maximum leases of one group on one server with affinity; further leases go to other servers. Default 8. */
  @IsOptional() @IsWithin(1, LIMITS.samplesPerGroup) groupAffinityCap?: Integer;
  /** `auto` spreads siblings with fewer `contextTokens` than this. Default 2,048. */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) groupSpreadBelowTokens?: Integer;
  /** `auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7. */
  @IsOptional() @IsDecimal(0, 1) groupSpreadAboveKvUse?: number;
  /** Idle time after which a session is forgotten, milliseconds. Default: SESSION_IDLE_MS of the load-balancer. */
  @IsOptional() @IsWithin(1_000, 2_592_000_000) sessionIdleMs?: Integer;
  /** Maximum sessions; above it the session that was idle longest is forgotten. Default 200,000. */
  @IsOptional() @IsWithin(1, 10_000_000) maxSessions?: Integer;
  /** Every n-th decision is stored with its full snapshot. Default 1,000. */
  @IsOptional() @IsWithin(1, 1_000_000_000) decisionSampleEvery?: Integer;
  /** Maximum leases of the whole pool. Unset = the sum of its servers. */
  @IsOptional() @IsWithin(1, 1_000_000_000) poolMaxInflight?: Integer;
  /** A server that reports another weight version is `quarantined` until it reports this one. Unset = any version. */
  @IsOptional() @IsCounter(0) requiredWeightVersion?: Integer;
  /** Time in which a new or restarted server reaches its capacity, milliseconds. Default 0 = at once. */
  @IsOptional() @IsWithin(0, 86_400_000) slowStartMs?: Integer;
  /** Share of its capacity with which a server in slow start begins. Default 0.1; at least one lease. */
  @IsOptional() @IsDecimal(0, 1) slowStartFraction?: number;
  /**
   * Number of consecutive failed calls (released as `failed`: a broken stream, 500) that make a server suspect although
   * it answers probes, unless fewer than half of the servers would be left. 0 = off. Default 5.
   */
  @IsOptional() @IsWithin(0, 10_000) breakerFailures?: Integer;
  /** How long the server is then suspect, milliseconds; after that it gets one call first. Default 10,000. */
  @IsOptional() @IsWithin(100, 3_600_000) breakerOpenMs?: Integer;
  /** 1 = the capacity of each server follows its load reports. Default 0 = off. */
  @IsOptional() @IsIn([0, 1]) adaptiveConcurrency?: 0 | 1;
  /** Pause between two changes of a server's capacity, milliseconds. Default 2,000. */
  @IsOptional() @IsWithin(100, 600_000) adaptIntervalMs?: Integer;
}

/** Names of the settings, for `reset`. */
export const POOL_SETTING_NAMES = [
  'policy',
  'affinityBreakMargin',
  'affinityBreakMaxContextTokens',
  'groupPlacement',
  'groupAffinityCap',
  'groupSpreadBelowTokens',
  'groupSpreadAboveKvUse',
  'sessionIdleMs',
  'maxSessions',
  'decisionSampleEvery',
  'poolMaxInflight',
  'requiredWeightVersion',
  'slowStartMs',
  'slowStartFraction',
  'breakerFailures',
  'breakerOpenMs',
  'adaptiveConcurrency',
  'adaptIntervalMs',
] as const satisfies readonly (keyof PoolSettings)[];
/** Name of a setting of a pool. */
export type PoolSettingName = (typeof POOL_SETTING_NAMES)[number];

/**
 * `pool.configure`: changes the given settings; absent ones stay. All are checked before any is changed; a repeat
 * changes nothing.
 */
export class ConfigurePoolRequest extends PoolSettings {
  /** Names of settings to reset to their defaults before the others are set. */
  @IsOptional() @IsList(64) @IsIn(POOL_SETTING_NAMES, { each: true }) reset?: PoolSettingName[];
  /** Only if the settings have this version, or are already as asked; otherwise VERSION_MISMATCH. */
  @IsOptional() @IsCounter(0) ifVersion?: Integer;
}

/** `pool.history`: the last 32 versions of the settings, latest first. */
export class PoolHistoryRequest {}
/** The settings of a pool from one change to the next. */
export interface PoolVersion extends Pick<PoolSettingsReply, 'version' | 'settings'> {
  /** When it began, milliseconds since 1970. */
  sinceMs: Integer;
}
export interface PoolHistoryReply {
  /** Latest first; the first one is in force. */
  versions: PoolVersion[];
}

/**
 * `pool.rollback`: sets all settings as they were in an earlier version, as a new version. A `requiredWeightVersion`
 * becomes the version of the weights that was committed last, if there is one.
 */
export class RollbackPoolRequest {
  /** A version of `pool.history`. */
  @IsCounter(0) version!: Integer;
  /** Only if the settings have this version now, or are already as asked; otherwise VERSION_MISMATCH. */
  @IsOptional() @IsCounter(0) ifVersion?: Integer;
}

/** `pool.settings`: returns the settings of the pool. */
export class PoolSettingsRequest {}
export interface PoolSettingsReply {
  /** Version of the settings, increased by 1 with each change. */
  version: Integer;
  /** The settings that were set; all others have their defaults. */
  settings: PoolSettings;
  /** The active policy. */
  policy: RoutingPolicy;
  /** The policy that becomes active when every server is scored for it. */
  nextPolicy?: RoutingPolicy;
}

/**
 * `pool.pause`: stops leases and claims until `pool.resume`. Acquires and claims are answered POOL_PAUSED: at once, or
 * after their `waitMs`.
 */
export class PausePoolRequest {
  /**
   * Time after which the pause ends and engines are resumed, milliseconds; a repeat begins it again. Absent: the pause
   * has no end but `pool.resume`. A pause without this time stays one.
   */
  @IsOptional() @IsWithin(1_000, 86_400_000) deadlineMs?: Integer;
}
/** `pool.resume`: ends a pause; waiting acquires and claims are served. */
export class ResumePoolRequest {}
export interface PausePoolReply {
  /** The pool is paused now. */
  paused: boolean;
  /** False if the pool was already in this state. */
  changed: boolean;
}

/** `pool.find`: whether there is a pool. It is also answered where no service serves the pool of the caller. */
export class FindPoolRequest {
  /** Name of the pool. */
  @Matches(POOL_PATTERN) name!: PoolName;
}
export interface FindPoolReply {
  /** The load-balancer that replies serves the pool, or the pool has state in Redis. */
  known: boolean;
  /** Pools that it serves by name, and pools with state in Redis: the first 128 in order of their names. */
  pools: PoolName[];
}
