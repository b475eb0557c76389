import type { SegmentPayload } from '@broomwagon/contracts';
import type { GenerationResult, TokenIncrement } from '@broomwagon/engines';
import type { TokenBuffer } from './token-buffer';

/** Tokens of one attempt, counted and ready to be stored. */
export interface MadeSegment {
  tokenCount: number;
  payload: SegmentPayload;
  resumedBy?: 'tokens' | 'text';
}

/** Collects the tokens of a stream, so that they are kept when the stream breaks. */
export class TokenCollector {
  private counted = 0;
  /** How the tokens of earlier attempts were continued, if there are any. */
  resumedBy?: 'tokens' | 'text';

  /** @param buffer absent: tokens are only counted, since the caller keeps them */
  constructor(private readonly buffer?: TokenBuffer) {}

  /** @returns true if a stop text that began in an earlier attempt ends the response */
  take(increment: TokenIncrement): boolean {
    this.counted += increment.tokenCount;
    return this.buffer?.take(increment) ?? false;
  }

  get tokenCount(): number {
    return this.buffer?.count ?? this.counted;
  }

  /** The stop text that began in an earlier attempt and has ended the response. */
  get matched(): string | undefined {
    return this.buffer?.matched;
  }

  /** The attempt ended early: tokens of a character that is not whole are generated again. */
  cut(): void {
    this.buffer?.cut();
  }

  /** The tokens so far, with text that the next attempt may turn out to end (`heldText`). */
  made(): MadeSegment {
    return { tokenCount: this.tokenCount, payload: this.payload(), resumedBy: this.resumedBy };
  }

  /** The tokens of a finished attempt, counted by their ids if there are any, else by the usage of the engine. */
  finished(result: GenerationResult | undefined): MadeSegment {
    this.buffer?.complete();
    const payload = this.payload();
    const { usage, stopReason, engineFinishReason, engineFields } = result ?? {};
    const isCountedById = (payload.tokenIds?.length ?? 0) > 0 || this.matched !== undefined;
    return {
      tokenCount: isCountedById ? this.tokenCount : (usage?.completionTokens ?? this.tokenCount),
      payload: { ...payload, stopReason: this.matched ?? stopReason, engineFinishReason, engineFields },
      resumedBy: this.resumedBy,
    };
  }

  /** Lists that do not cover every token are left out. */
  private payload(): SegmentPayload {
    const { buffer } = this;
    if (buffer === undefined) return {};
    return {
      tokenIds: buffer.allIds,
      text: buffer.textFrom(0),
      logprobs: buffer.allLogprobs?.map((logprob) => (Number.isNaN(logprob) ? null : logprob)),
      heldText: buffer.openText || undefined,
    };
  }
}
