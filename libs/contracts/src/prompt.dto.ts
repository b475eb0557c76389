import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsInt,
  IsOptional,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';
import { IsCorrelationId } from './ids';
import { LIMITS } from './limits';
import type { Integer } from './integers';

/** Lengths that are known of a prompt from elsewhere, an earlier run for example. */
export class KnownPrompt {
  /** Name of the prompt in the memory. */
  @IsCorrelationId() promptId!: string;
  /** Of its responses, tokens. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.samplesPerGroup)
  @IsInt({ each: true })
  @Min(0, { each: true })
  @Max(LIMITS.maxTokens, { each: true })
  lengths!: Integer[];
  /** They all ended at their token budget. */
  @IsOptional() @IsBoolean() atCap?: boolean;
}
/**
 * `prompt.remember`: adds lengths to the prompt memory of the pool; those that rounds train are added by themselves.
 */
export class RememberPromptsRequest {
  /** The prompts. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.page)
  @ValidateNested({ each: true })
  @Type(() => KnownPrompt)
  prompts!: KnownPrompt[];
}
export interface RememberPromptsReply {
  /** Lengths that were added. */
  remembered: Integer;
}
/** `prompt.lengths`: what the memory expects of prompts. */
export class PromptLengthsRequest {
  /** Names of the prompts in the memory. */
  @IsArray() @ArrayMinSize(1) @ArrayMaxSize(LIMITS.page) @IsCorrelationId({ each: true }) promptIds!: string[];
}
/** What the memory expects of one prompt. */
export interface PromptLengths {
  /** Name of the prompt in the memory. */
  promptId: string;
  /** Counted up to 64, from where on old ones fade. */
  samples: Integer;
  /** Median of its responses, tokens. */
  medianTokens: number;
  /** Standard deviation of the natural logarithm. */
  deviationLog: number;
  /** Share that ended at the token budget. */
  capShare: number;
}
export interface PromptLengthsReply {
  /** Without those that were never seen. */
  prompts: PromptLengths[];
}
