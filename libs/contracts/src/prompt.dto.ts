import type { LengthSummary } from './ledger.dto';
import { IsBoolean, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import { IsCorrelationId, IsId, IsList, IsListOf, IsWithin } from './rules';
import type { Integer } from './scalars';

/** Known response lengths of a prompt, for example from an earlier run. */
export class KnownPrompt {
  /** Id of the prompt in the prompt memory. */
  @IsCorrelationId() promptId!: string;
  /** Lengths of the responses, tokens. */
  @IsList(LIMITS.samplesPerGroup, 1) @IsWithin(0, LIMITS.maxTokens, { each: true }) lengths!: Integer[];
  /** True if all responses ended at their token budget. */
  @IsOptional() @IsBoolean() atCap?: boolean;
}
/**
 * `prompt.remember`: adds lengths to the prompt memory of the pool; lengths of trained samples are added automatically.
 */
export class RememberPromptsRequest {
  /** Prompts to remember, with lengths of their samples. */
  @IsListOf(() => KnownPrompt, LIMITS.page, 1) prompts!: KnownPrompt[];
  /**
   * Id of this call, for idempotency: a repeat within 10 minutes adds nothing. Absent: a repeat adds the lengths again.
   */
  @IsOptional() @IsId() rememberId?: string;
}
export interface RememberPromptsReply {
  /** Number of prompts with new lengths, from this call or, for a repeat, from the first call. */
  remembered: Integer;
}
/** `prompt.lengths`: returns the expected response lengths of prompts. */
export class PromptLengthsRequest {
  /** Ids of the prompts in the prompt memory. */
  @IsList(LIMITS.page, 1) @IsCorrelationId({ each: true }) promptIds!: string[];
}
/** Expected response length of one prompt. */
export interface PromptLengths extends Pick<KnownPrompt, 'promptId'>, Pick<LengthSummary, 'capShare'> {
  /** Number of known lengths, up to 64. Beyond 64, older lengths count less. */
  samples: Integer;
  /** Median length of the responses, tokens. */
  medianTokens: number;
  /** Standard deviation of the natural logarithm of the lengths. */
  deviationLog: number;
}
export interface PromptLengthsReply {
  /** The prompts that are in the memory. */
  prompts: PromptLengths[];
}
