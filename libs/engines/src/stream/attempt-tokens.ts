import { BroomwagonError, LIMITS } from '@broomwagon/contracts';
import type { GenerationResult, TokenIncrement } from '../engine-adapter';
import { mergeEngineFields, type StreamStep } from './chunk-reader';
import { markStop, type IncludedStop } from './included-stop';

/** Collects the tokens of one attempt, and gives each increment to `onTokens` when it arrives. */
export class AttemptTokens {
  finishReason?: GenerationResult['finishReason'];
  private readonly tokenIds: number[] = [];
  private readonly text: string[] = [];
  private readonly logprobs: (number | null)[] = [];
  private tokenCount = 0;
  private idCount = 0;
  /** Tokens of chunks that were dropped. */
  private lostTokens = 0;
  /** Tokens of the largest increment. */
  largest = 0;
  private stopReason?: string | number;
  private engineFinishReason?: string;
  private usage?: GenerationResult['usage'];
  private engineFields?: Record<string, unknown>;

  constructor(
    private readonly onTokens?: (increment: TokenIncrement) => void,
    private readonly keepsTokens = true,
    private readonly stop?: IncludedStop,
  ) {}

  get count(): number {
    return this.tokenCount;
  }

  /** Tokens that the engine has counted and that were not received; 0 if the engine does not send all ids. */
  get missing(): number {
    if (this.idCount !== this.tokenCount) return this.lostTokens;
    return Math.max(this.lostTokens, (this.usage?.completionTokens ?? 0) - this.tokenCount);
  }

  get isEmpty(): boolean {
    return this.tokenCount === 0;
  }

  /** @returns true if the step has tokens */
  take(step: StreamStep): boolean {
    const isFirstEnd = this.finishReason === undefined;
    this.finishReason ??= step.finishReason;
    this.stopReason ??= step.stopReason;
    this.engineFinishReason ??= step.engineFinishReason;
    this.usage = step.usage ?? this.usage;
    this.lostTokens += step.lostTokens ?? 0;
    if (step.engineFields) mergeEngineFields((this.engineFields ??= {}), step.engineFields);
    const { increment } = step;
    if (!increment) return false;
    const hasTokens = increment.tokenCount > 0 || increment.text !== '';
    if (step.finishReason === 'stop' || step.finishReason === 'length') increment.isLast = true;
    if (step.usage !== undefined) increment.promptTokens = step.usage.promptTokens;
    if (isFirstEnd && this.stop && step.finishReason === 'stop') markStop(increment, step.stopReason, this.stop);
    if (!hasTokens && !increment.isLast && !increment.promptTokenIds && !increment.choice?.delta) return false;
    if (!Number.isInteger(increment.tokenCount) || increment.tokenCount > LIMITS.maxTokens) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `The engine counts ${increment.tokenCount} tokens in one event`);
    }
    this.tokenCount += increment.tokenCount;
    this.idCount += increment.tokenIds?.length ?? 0;
    this.largest = Math.max(this.largest, increment.tokenCount);
    if (this.keepsTokens) this.keep(increment);
    this.onTokens?.(increment);
    return hasTokens;
  }

  private keep({ tokenIds, logprobs, text }: TokenIncrement): void {
    // Entries are added one by one: a spread of a very long increment would overflow the stack.
    for (const tokenId of tokenIds ?? []) this.tokenIds.push(tokenId);
    for (const logprob of logprobs ?? []) this.logprobs.push(logprob);
    if (text !== '') this.text.push(text);
  }

  /** The result. Ids or log probabilities that do not cover every token are left out: trainers need whole lists. */
  result(finishReason: GenerationResult['finishReason'], resumedBy: GenerationResult['resumedBy']): GenerationResult {
    const covered = <T>(list: T[]): T[] | undefined =>
      list.length === this.tokenCount && list.length > 0 ? list : undefined;
    return {
      tokenIds: covered(this.tokenIds),
      text: this.text.join(''),
      tokenCount: this.tokenCount,
      finishReason,
      stopReason: this.stopReason,
      engineFinishReason: this.engineFinishReason,
      logprobs: covered(this.logprobs),
      usage: this.usage,
      engineFields: this.engineFields,
      resumedBy,
    };
  }
}
