import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
} from 'class-validator';
import { IsCounter } from './integers';

/** What an engine can do or not. An acquire may ask for any of them (`needs`). */
export const ENGINE_FEATURES = [
  /** Takes prompts as token ids: resume is exact. */
  'tokenIdsIn',
  /** Answers with token ids. */
  'tokenIdsOut',
  'logprobs',
  /** Has a route that stops one request by its id. */
  'abortById',
  /** Stops a request whose connection is closed. */
  'abortOnDisconnect',
  /** Says how much it has in hand. */
  'loadReport',
  /** Has a route that empties its prefix cache, as new weights ask for. */
  'prefixCacheReset',
  /** Tells the token ids of a text as it would read it: a text prompt is resumed by token ids. */
  'tokenize',
] as const;
export type EngineFeature = (typeof ENGINE_FEATURES)[number];

/** What becomes of running requests when an engine is paused: ended, waited for, or held as they are. */
export const PAUSE_MODES = ['abort', 'wait', 'keep'] as const;
export type PauseMode = (typeof PAUSE_MODES)[number];

/** What the probe of an engine found (libs/engines). A feature that is absent is unknown. */
export class EngineCapabilities implements Partial<Record<EngineFeature, boolean>> {
  @IsOptional() @IsBoolean() tokenIdsIn?: boolean;
  @IsOptional() @IsBoolean() tokenIdsOut?: boolean;
  @IsOptional() @IsBoolean() logprobs?: boolean;
  @IsOptional() @IsBoolean() abortById?: boolean;
  @IsOptional() @IsBoolean() abortOnDisconnect?: boolean;
  @IsOptional() @IsBoolean() loadReport?: boolean;
  @IsOptional() @IsBoolean() prefixCacheReset?: boolean;
  @IsOptional() @IsBoolean() tokenize?: boolean;
  /** Ways in which it can be paused; empty = it cannot. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(PAUSE_MODES.length)
  @IsIn(PAUSE_MODES, { each: true })
  pauseModes?: PauseMode[];
  /** Engines behind its one address that share the requests; 1 = no data parallelism. */
  @IsOptional() @IsInt() @Min(1) @Max(65_536) dataParallelRanks?: number;
  /** Longest prompt + response, tokens; absent when the engine does not say. */
  @IsOptional() @IsCounter(1) maxModelTokens?: number;
  @IsOptional() @IsString() @MaxLength(64) version?: string;
}
