import { IsIn, IsOptional, Matches, ValidateBy } from 'class-validator';
import { POOL_PATTERN } from './ids';
import { LIMITS } from './limits';
import { IsCounter, IsDecimal, IsList, IsWithin } from './rules';
import type { Integer, PoolName } from './scalars';

export const ROUTING_POLICIES = [
  'least-inflight',
  'least-tokens',
  'least-sessions',
  'least-kv',
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

export const SESSION_ADMISSIONS = ['off', 'kv'] as const;
/** How turns of sessions are admitted. */
export type SessionAdmission = (typeof SESSION_ADMISSIONS)[number];

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
   * A session leaves its server if that server has more leases than the best server of the policy and this margin
   * together: 0 to 1,000,000. `never` (the default): a session stays under any load.
   */
  @IsOptional() @IsMargin() affinityBreakMargin?: number | 'never';
  /**
   * An acquire with more `contextTokens` stays on the server of its session, because another prefill would cost more.
   * Unset = no limit.
   */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) affinityBreakMaxContextTokens?: Integer;
  /** Default `group-spread`. */
  @IsOptional() @IsIn(GROUP_PLACEMENTS) groupPlacement?: GroupPlacement;
  /** Maximum leases of one group on one server with affinity; further leases go to other servers. Default 8. */
  @IsOptional() @IsWithin(1, LIMITS.samplesPerGroup) groupAffinityCap?: Integer;
  /** `auto` spreads samples of a group with fewer `contextTokens` than this. Default 2,048. */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) groupSpreadBelowTokens?: Integer;
  /** `auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7. */
  @IsOptional() @IsDecimal(0, 1) groupSpreadAboveKvUse?: number;
  /** Idle time after which a session is forgotten, milliseconds. Default: SESSION_IDLE_MS of the load-balancer. */
  @IsOptional() @IsWithin(1_000, 2_592_000_000) sessionIdleMs?: Integer;
  /** Maximum sessions. When there are more, the session that was idle longest is forgotten. Default 200,000. */
  @IsOptional() @IsWithin(1, 10_000_000) maxSessions?: Integer;
  /**
   * `kv`: sessions are admitted at turn boundaries by the KV memory that their contexts need; also sets the policy
   * `least-kv` if the pool has no policy. Default `off`.
   */
  @IsOptional() @IsIn(SESSION_ADMISSIONS) sessionAdmission?: SessionAdmission;
  /** KV memory of a server whose engine reports none, tokens. Unset = such a server takes all sessions. */
  @IsOptional() @IsWithin(1, LIMITS.integer) sessionKvTokens?: Integer;
  /** A paused session whose turn has waited for this time goes on whatever the KV memory. Default 600,000. */
  @IsOptional() @IsWithin(1_000, 86_400_000) pausedSessionWaitMs?: Integer;
  /** Every n-th decision is stored with its full snapshot. Default 1,000. */
  @IsOptional() @IsWithin(1, 1_000_000_000) decisionSampleEvery?: Integer;
  /** Maximum leases of the whole pool. Unset = the sum over all servers. */
  @IsOptional() @IsWithin(1, 1_000_000_000) poolMaxInflight?: Integer;
  /** A server with another weight version is `quarantined` until it reports this version. Unset = any version. */
  @IsOptional() @IsCounter(0) requiredWeightVersion?: Integer;
  /** Time in which a new or restarted server reaches its capacity, milliseconds. Default 0 = at once. */
  @IsOptional() @IsWithin(0, 86_400_000) slowStartMs?: Integer;
  /** Share of the capacity with which a server begins in slow start, at least one lease. Default 0.1. */
  @IsOptional() @IsDecimal(0, 1) slowStartFraction?: number;
  /**
   * Consecutive failed calls (outcome `failed` of `lb.release`) that make a server suspect although it answers probes;
   * never more than half of the servers. 0 = off. Default 5.
   */
  @IsOptional() @IsWithin(0, 10_000) breakerFailures?: Integer;
  /** Time that a server is then suspect, milliseconds; after that the server gets one call first. Default 10,000. */
  @IsOptional() @IsWithin(100, 3_600_000) breakerOpenMs?: Integer;
  /** 1 = the capacity of a server follows the load that its engine reports. Default 0 = off. */
  @IsOptional() @IsIn([0, 1]) adaptiveConcurrency?: 0 | 1;
  /** Pause between two changes of a server's capacity, milliseconds. Default 2,000. */
  @IsOptional() @IsWithin(100, 600_000) adaptIntervalMs?: Integer;
  /**
   * Tokens of one event that workers and gateways ask engines for, for responses that no client reads token by token.
   * Default: STREAM_INTERVAL of the worker or gateway.
   */
  @IsOptional() @IsWithin(1, LIMITS.maxTokens) streamInterval?: Integer;
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
  'sessionAdmission',
  'sessionKvTokens',
  'pausedSessionWaitMs',
  'decisionSampleEvery',
  'poolMaxInflight',
  'requiredWeightVersion',
  'slowStartMs',
  'slowStartFraction',
  'breakerFailures',
  'breakerOpenMs',
  'adaptiveConcurrency',
  'adaptIntervalMs',
  'streamInterval',
] as const satisfies readonly (keyof PoolSettings)[];
/**
 * Values of settings that are not set. Missing here: `sessionIdleMs` and `streamInterval`, which services have as
 * settings of their own, and settings that mean no limit when they are not set.
 */
export const POOL_SETTING_DEFAULTS = {
  policy: 'least-inflight',
  affinityBreakMargin: 'never',
  groupPlacement: 'group-spread',
  groupAffinityCap: 8,
  groupSpreadBelowTokens: 2_048,
  groupSpreadAboveKvUse: 0.7,
  maxSessions: 200_000,
  sessionAdmission: 'off',
  pausedSessionWaitMs: 600_000,
  decisionSampleEvery: 1_000,
  slowStartMs: 0,
  slowStartFraction: 0.1,
  breakerFailures: 5,
  breakerOpenMs: 10_000,
  adaptiveConcurrency: 0,
  adaptIntervalMs: 2_000,
} as const satisfies PoolSettings;
/** Name of a setting of a pool. */
export type PoolSettingName = (typeof POOL_SETTING_NAMES)[number];

/**
 * `pool.configure`: changes the given settings; absent settings stay. If one setting is wrong, none is changed. A
 * repeat changes nothing.
 */
export class ConfigurePoolRequest extends PoolSettings {
  /** Names of settings to reset to their defaults before the given settings are set. */
  @IsOptional() @IsList(64) @IsIn(POOL_SETTING_NAMES, { each: true }) reset?: PoolSettingName[];
  /** Required version of the settings. Otherwise VERSION_MISMATCH, unless the settings are already as requested. */
  @IsOptional() @IsCounter(0) ifVersion?: Integer;
}

/** `pool.history`: the last 32 versions of the settings, latest first. */
export class PoolHistoryRequest {
  /** Maximum versions, the latest; absent: all of them. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** The settings of a pool from one change to the next. */
export interface PoolVersion extends Pick<PoolSettingsReply, 'version' | 'settings'> {
  /** When the version came into force, milliseconds since 1970. */
  sinceMs: Integer;
}
export interface PoolHistoryReply {
  /** Versions, latest first. The first version is in force. */
  versions: PoolVersion[];
}

/**
 * `pool.rollback`: sets all settings as in an earlier version; this makes a new version. A `requiredWeightVersion`
 * becomes the last committed weight version, if weights were committed.
 */
export class RollbackPoolRequest {
  /** A version of `pool.history`. */
  @IsCounter(0) version!: Integer;
  /** Required present version. Otherwise VERSION_MISMATCH, unless the settings are already as requested. */
  @IsOptional() @IsCounter(0) ifVersion?: Integer;
}

/** `pool.settings`: returns the settings of the pool. */
export class PoolSettingsRequest {}
export interface PoolSettingsReply {
  /** Version of the settings, which grows with each change of settings. A change of weights does not change it. */
  version: Integer;
  /** Settings that `pool.configure` has set, and the weight version that a commit requires. */
  settings: PoolSettings;
  /** Values of settings that are not set; absent for a setting without a value, or with one of each service. */
  defaults?: PoolSettings;
  /** Values in force: the settings, otherwise the defaults. */
  effective?: PoolSettings;
  /** The active policy. */
  policy: RoutingPolicy;
  /** The policy that becomes active when the load keys of all servers are computed. */
  nextPolicy?: RoutingPolicy;
}

/**
 * `pool.pause`: stops leases and claims until `pool.resume`. Acquires and claims are answered POOL_PAUSED, at once or
 * after `waitMs`.
 */
export class PausePoolRequest {
  /**
   * Time after which the pause ends and engines are resumed, milliseconds. A repeat starts the time again. Absent: only
   * `pool.resume` ends the pause; a later deadline does not change this.
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

/**
 * `pool.find`: tells whether a pool exists. Any load-balancer answers, also one that does not serve the pool of the
 * caller.
 */
export class FindPoolRequest {
  /** Name of the pool. */
  @Matches(POOL_PATTERN) name!: PoolName;
}
export interface FindPoolReply {
  /** True if the replying load-balancer serves the pool by name, or the pool has state in Redis. */
  known: boolean;
  /** Pools that the load-balancer serves by name, and pools with state in Redis: the first 128, sorted. */
  pools: PoolName[];
}
