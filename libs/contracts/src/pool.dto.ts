import { ArrayMaxSize, IsArray, IsIn, IsInt, IsNumber, IsOptional, Max, Min, ValidateBy } from 'class-validator';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';

export const ROUTING_POLICIES = [
  'least-inflight',
  'least-tokens',
  'least-sessions',
  'round-robin',
  'consistent-hash',
] as const;
/** How an acquire without a session finds its server (libs/policies/src/routing/README.md). */
export type RoutingPolicy = (typeof ROUTING_POLICIES)[number];

export const GROUP_PLACEMENTS = ['group-spread', 'group-affinity', 'auto'] as const;
/** Where the siblings of one group go. */
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

/** Settings of a pool, changed while it runs. All replicas act by them from the next script on. */
export class PoolSettings {
  /** Default `least-inflight`. */
  @IsOptional() @IsIn(ROUTING_POLICIES) policy?: RoutingPolicy;
  /**
   * A session leaves its server when that has more leases than the server it would get else, plus this: 0 to 1,000,000.
   * `never` (the default): it stays, whatever the load.
   */
  @IsOptional() @IsMargin() affinityBreakMargin?: number | 'never';
  /** An acquire with more `contextTokens` than this stays, since the prefill anew would cost more. Unset = no bound. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) affinityBreakMaxContextTokens?: Integer;
  /** Default `group-spread`. */
  @IsOptional() @IsIn(GROUP_PLACEMENTS) groupPlacement?: GroupPlacement;
  /** Leases of one group on one server under affinity; more spill over. Default 8. */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) groupAffinityCap?: Integer;
  /** `auto` spreads siblings with fewer `contextTokens` than this. Default 2,048. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) groupSpreadBelowTokens?: Integer;
  /** `auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7. */
  @IsOptional()
  @IsNumber({ allowNaN: false, allowInfinity: false })
  @Min(0)
  @Max(1)
  groupSpreadAboveKvUse?: number;
  /** A session idle for this long is forgotten, milliseconds. Default: SESSION_IDLE_MS of the load-balancer. */
  @IsOptional() @IsInt() @Min(1_000) @Max(2_592_000_000) sessionIdleMs?: Integer;
  /** Sessions kept; above it the longest idle one goes. Default: MAX_SESSIONS of the load-balancer. */
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxSessions?: Integer;
  /** Every n-th decision is kept with its full snapshot. Default 1,000. */
  @IsOptional() @IsInt() @Min(1) @Max(1_000_000_000) decisionSampleEvery?: Integer;
  /** Most leases at once in the whole pool. Unset = the sum of its servers. */
  @IsOptional() @IsInt() @Min(1) @Max(1_000_000_000) poolMaxInflight?: Integer;
  /** A server that reports another weight version is `quarantined` until it reports this one. Unset = any will do. */
  @IsOptional() @IsCounter(0) requiredWeightVersion?: Integer;
  /** A new start of a server reaches its capacity in this time, milliseconds. Default 0 = at once. */
  @IsOptional() @IsInt() @Min(0) @Max(86_400_000) slowStartMs?: Integer;
  /** Share of its capacity a server in slow start begins with. Default 0.1; never less than one lease. */
  @IsOptional()
  @IsNumber({ allowNaN: false, allowInfinity: false })
  @Min(0)
  @Max(1)
  slowStartFraction?: number;
  /**
   * So many calls of a server that failed one after the other (released as `failed`: no connection, a broken stream,
   * 5xx) make it suspect, though it answers probes; never when fewer than half of the servers would be left. Unset =
   * off.
   */
  @IsOptional() @IsInt() @Min(1) @Max(10_000) breakerFailures?: Integer;
  /** For how long, milliseconds. Default 10,000. */
  @IsOptional() @IsInt() @Min(100) @Max(3_600_000) breakerOpenMs?: Integer;
  /** 1 = the capacity of each server follows its load reports (libs/policies/src/admission). Default 0 = off. */
  @IsOptional() @IsIn([0, 1]) adaptiveConcurrency?: 0 | 1;
  /** Pause between two changes of a server's capacity, milliseconds. Default 2,000. */
  @IsOptional() @IsInt() @Min(100) @Max(600_000) adaptIntervalMs?: Integer;
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

/** `pool.configure`: what is absent stays. Checked as a whole before anything is changed; a repeat changes nothing. */
export class ConfigurePoolRequest extends PoolSettings {
  /** Names of settings that go back to their defaults, before the others are set. */
  @IsOptional() @IsArray() @ArrayMaxSize(64) @IsIn(POOL_SETTING_NAMES, { each: true }) reset?: PoolSettingName[];
}

/** `pool.settings`: what is in force. */
export class PoolSettingsRequest {}
export interface PoolSettingsReply {
  /** +1 with each change. */
  version: Integer;
  /** What was set; the rest is at its default. */
  settings: PoolSettings;
  /** The policy that decides now. */
  policy: RoutingPolicy;
  /** The policy that takes over at once when every server is scored for it. */
  nextPolicy?: RoutingPolicy;
}

/**
 * `pool.pause`: no lease is granted and no request claimed until `pool.resume`. Acquires and claims are answered
 * POOL_PAUSED: at once, or when their `waitMs` is over.
 */
export class PausePoolRequest {}
/** `pool.resume`: room and requests go to those who wait. */
export class ResumePoolRequest {}
export interface PausePoolReply {
  /** The pool is paused now. */
  paused: boolean;
  /** False for a repeat. */
  changed: boolean;
}
