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
import { IsCounter, type Integer } from './integers';

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
/**
 * Something an engine can do or not: `tokenIdsIn` takes prompts as token ids, so resume is exact; `tokenIdsOut`
 * answers with token ids; `logprobs` answers with log probabilities; `abortById` stops one request by its id;
 * `abortOnDisconnect` stops a request whose connection is closed; `loadReport` tells how much it has in hand;
 * `prefixCacheReset` empties its prefix cache, as new weights ask for; `tokenize` tells the token ids of a text as it
 * would read it.
 */
export type EngineFeature = (typeof ENGINE_FEATURES)[number];

export const PAUSE_MODES = ['abort', 'wait', 'keep'] as const;
/** What becomes of running requests when an engine is paused: ended, waited for, or held as they are. */
export type PauseMode = (typeof PAUSE_MODES)[number];

/** What the probe of an engine found (libs/engines). A feature that is absent is unknown. */
export class EngineCapabilities implements Partial<Record<EngineFeature, boolean>> {
  /** Takes prompts as token ids: resume is exact. */
  @IsOptional() @IsBoolean() tokenIdsIn?: boolean;
  /** Answers with token ids. */
  @IsOptional() @IsBoolean() tokenIdsOut?: boolean;
  /** Answers with log probabilities. */
  @IsOptional() @IsBoolean() logprobs?: boolean;
  /** Has a route that stops one request by its id. */
  @IsOptional() @IsBoolean() abortById?: boolean;
  /** Stops a request whose connection is closed. */
  @IsOptional() @IsBoolean() abortOnDisconnect?: boolean;
  /** Tells how much it has in hand. */
  @IsOptional() @IsBoolean() loadReport?: boolean;
  /** Has a route that empties its prefix cache, as new weights ask for. */
  @IsOptional() @IsBoolean() prefixCacheReset?: boolean;
  /** Tells the token ids of a text as it would read it: a text prompt is resumed by token ids. */
  @IsOptional() @IsBoolean() tokenize?: boolean;
  /** Ways in which it can be paused; empty = it cannot. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(PAUSE_MODES.length)
  @IsIn(PAUSE_MODES, { each: true })
  pauseModes?: PauseMode[];
  /** Engines behind its one address that share the requests; 1 = no data parallelism. */
  @IsOptional() @IsInt() @Min(1) @Max(65_536) dataParallelRanks?: Integer;
  /** Longest prompt + response, tokens; absent when the engine does not say. */
  @IsOptional() @IsCounter(1) maxModelTokens?: Integer;
  /** Version of the engine, as it tells it. */
  @IsOptional() @IsString() @MaxLength(64) version?: string;
}
