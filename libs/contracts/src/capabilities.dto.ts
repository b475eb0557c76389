import { IsBoolean, IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { IsCounter, IsList, IsWithin } from './rules';
import type { Integer } from './scalars';

export const ENGINE_FEATURES = [
  'tokenIdsIn',
  'tokenIdsOut',
  'logprobs',
  'abortById',
  'abortOnDisconnect',
  'loadReport',
  'prefixCacheReset',
  'tokenize',
] as const;
/** Name of a capability of an engine: a field of {@link EngineCapabilities}. */
export type EngineFeature = (typeof ENGINE_FEATURES)[number];

export const PAUSE_MODES = ['abort', 'wait', 'keep'] as const;
/** Treatment of running requests when an engine is paused: abort, wait for their end, or keep. */
export type PauseMode = (typeof PAUSE_MODES)[number];

/** Capabilities of an engine, from its registration or a probe. An absent capability is unknown. */
export class EngineCapabilities implements Partial<Record<EngineFeature, boolean>> {
  /** The engine accepts token ids, so resume is exact. */
  @IsOptional() @IsBoolean() tokenIdsIn?: boolean;
  /** The engine returns token ids. */
  @IsOptional() @IsBoolean() tokenIdsOut?: boolean;
  /** The engine returns log probabilities. */
  @IsOptional() @IsBoolean() logprobs?: boolean;
  /** The engine has a route that stops a request by its id. */
  @IsOptional() @IsBoolean() abortById?: boolean;
  /** The engine stops a request when the caller closes the connection. */
  @IsOptional() @IsBoolean() abortOnDisconnect?: boolean;
  /** The engine reports its load. */
  @IsOptional() @IsBoolean() loadReport?: boolean;
  /** The engine has a route that resets its prefix cache. New weights require a reset. */
  @IsOptional() @IsBoolean() prefixCacheReset?: boolean;
  /** The engine keeps prefix cache entries apart by the salt of each request (`cacheSalt` of a lease). */
  @IsOptional() @IsBoolean() cacheSalt?: boolean;
  /**
   * The engine knows the session of each request, and gives up the KV cache of a session that is closed (SGLang with
   * `--enable-session-radix-cache`): load-balancer closes sessions there when they end.
   */
  @IsOptional() @IsBoolean() sessionClose?: boolean;
  /** The engine returns the token ids of a text, so a text prompt can be resumed by token ids. */
  @IsOptional() @IsBoolean() tokenize?: boolean;
  /**
   * The engine takes `stream_interval` of requests, and sends one event for so many tokens. Engines without it send an
   * event for each token unless they are started with `--stream-interval`.
   */
  @IsOptional() @IsBoolean() streamInterval?: boolean;
  /** Supported pause modes; empty = none. */
  @IsOptional() @IsList(PAUSE_MODES.length) @IsIn(PAUSE_MODES, { each: true }) pauseModes?: PauseMode[];
  /** Number of data-parallel ranks behind the address; 1 = no data parallelism. */
  @IsOptional() @IsWithin(1, 65_536) dataParallelRanks?: Integer;
  /** Maximum prompt + response, tokens; absent if the engine does not report it. */
  @IsOptional() @IsCounter(1) maxModelTokens?: Integer;
  /** Version that the engine reports. */
  @IsOptional() @IsString() @MaxLength(64) version?: string;
}
