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
/** A capability of an engine; the fields of {@link EngineCapabilities} describe each. */
export type EngineFeature = (typeof ENGINE_FEATURES)[number];

export const PAUSE_MODES = ['abort', 'wait', 'keep'] as const;
/** Treatment of running requests when an engine is paused: they are aborted, awaited, or kept. */
export type PauseMode = (typeof PAUSE_MODES)[number];

/** Capabilities found by the probe of an engine (libs/engines). An absent capability is unknown. */
export class EngineCapabilities implements Partial<Record<EngineFeature, boolean>> {
  /** Accepts prompts as token ids, so resume is exact. */
  @IsOptional() @IsBoolean() tokenIdsIn?: boolean;
  /** Returns token ids. */
  @IsOptional() @IsBoolean() tokenIdsOut?: boolean;
  /** Returns log probabilities. */
  @IsOptional() @IsBoolean() logprobs?: boolean;
  /** Has a route that stops a request by its id. */
  @IsOptional() @IsBoolean() abortById?: boolean;
  /** Stops a request whose connection is closed. */
  @IsOptional() @IsBoolean() abortOnDisconnect?: boolean;
  /** Reports its load. */
  @IsOptional() @IsBoolean() loadReport?: boolean;
  /** Has a route that resets its prefix cache, which new weights require. */
  @IsOptional() @IsBoolean() prefixCacheReset?: boolean;
  /** Keeps cache entries apart by a salt of each request (`cacheSalt` of a lease). */
  @IsOptional() @IsBoolean() cacheSalt?: boolean;
  /** Returns the token ids of a text, so that a text prompt can be resumed by token ids. */
  @IsOptional() @IsBoolean() tokenize?: boolean;
  /** Supported pause modes; empty = none. */
  @IsOptional() @IsList(PAUSE_MODES.length) @IsIn(PAUSE_MODES, { each: true }) pauseModes?: PauseMode[];
  /** Number of data-parallel ranks behind the address; 1 = no data parallelism. */
  @IsOptional() @IsWithin(1, 65_536) dataParallelRanks?: Integer;
  /** Maximum prompt + response, tokens; absent if the engine does not report it. */
  @IsOptional() @IsCounter(1) maxModelTokens?: Integer;
  /** Version that the engine reports. */
  @IsOptional() @IsString() @MaxLength(64) version?: string;
}
