import type { SegmentPayload } from '@broomwagon/contracts';
import type { Generated } from './run-on-engine';
import type { TokenBuffer } from '../tokens/token-buffer';

/** Tokens of one attempt, counted and ready to be stored. */
export interface MadeSegment {
  tokenCount: number;
  payload: SegmentPayload;
  resumedBy?: 'tokens' | 'text';
}

/** A place between two tokens of an attempt: the number of tokens before it, and of characters. */
export interface TokenPlace {
  tokens: number;
  characters: number;
}
export const START: TokenPlace = { tokens: 0, characters: 0 };

/** The place after the tokens so far. */
export function toPlace({ count, textLength }: TokenBuffer): TokenPlace {
  return { tokens: count, characters: textLength };
}

/**
 * The tokens of an attempt so far. `heldText` is the end of the text that may begin a stop text. Lists that do not
 * cover every token are left out.
 * @param generated end of the call, whose further fields of the engine are kept; absent: the call still runs
 * @param after place from which the segment begins
 */
export function toSegment(tokens: TokenBuffer, generated?: Generated, after: TokenPlace = START): MadeSegment {
  const { stopReason, engineFinishReason, engineFields } = generated?.result ?? {};
  const isFinished = generated !== undefined && 'finishReason' in generated;
  return {
    tokenCount: (generated?.tokenCount ?? tokens.count) - after.tokens,
    payload: {
      tokenIds: tokens.idsFrom(after.tokens),
      text: tokens.textFrom(after.characters),
      // JSON writes NaN as null.
      logprobs: tokens.logprobsFrom(after.tokens),
      heldText: tokens.openText || undefined,
      ...(isFinished && { stopReason: tokens.matched ?? stopReason, engineFinishReason }),
      engineFields,
    },
    resumedBy: tokens.resumedBy,
  };
}
