import type { GenerationResult, TokenIncrement } from '@broomwagon/engines';
import type { SegmentPayload } from '@broomwagon/contracts';

/** Tokens of one attempt, counted and ready to be stored. */
export interface MadeSegment {
  tokenCount: number;
  payload: SegmentPayload;
  resumedBy?: 'tokens' | 'text';
}

/** Collects the tokens of a stream, so that they are kept when the stream breaks. */
export class TokenCollector {
  private readonly tokenIds: number[] = [];
  private readonly logprobs: (number | null)[] = [];
  private readonly texts: string[] = [];
  private count = 0;
  /** How the tokens of earlier attempts were continued, if there are any. */
  resumedBy?: 'tokens' | 'text';

  /** @param keepsTokens false: tokens are only counted, since the caller keeps them */
  constructor(readonly keepsTokens = true) {}

  take(increment: TokenIncrement): void {
    this.count += increment.tokenCount;
    if (!this.keepsTokens) return;
    this.texts.push(increment.text);
    // One by one: a spread of a very long increment would overflow the stack.
    for (const tokenId of increment.tokenIds ?? []) this.tokenIds.push(tokenId);
    for (const logprob of increment.logprobs ?? []) this.logprobs.push(logprob);
  }

  get tokenCount(): number {
    return this.count;
  }

  /** The tokens so far. Lists that do not cover every token are left out. */
  made(): MadeSegment {
    const covering = <T>(list: T[]) => (this.count > 0 && list.length === this.count ? [...list] : undefined);
    const payload = { tokenIds: covering(this.tokenIds), text: this.texts.join(''), logprobs: covering(this.logprobs) };
    return { tokenCount: this.count, payload, resumedBy: this.resumedBy };
  }
}

/** The tokens of a finished attempt, counted by their ids if there are any, else by the usage of the engine. */
export function madeOf(result: GenerationResult): MadeSegment {
  const { tokenIds, text, logprobs, stopReason, engineFields, usage, resumedBy } = result;
  return {
    tokenCount: tokenIds?.length ?? usage?.completionTokens ?? result.tokenCount,
    payload: { tokenIds, text, logprobs, stopReason, engineFields },
    resumedBy,
  };
}
