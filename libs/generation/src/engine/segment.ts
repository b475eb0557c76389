import type { SegmentPayload } from '@broomwagon/contracts';
import type { Generated } from './run-on-engine';
import type { TokenBuffer } from '../tokens/token-buffer';

/** Tokens of one attempt, counted and ready to be stored. */
export interface MadeSegment {
  tokenCount: number;
  payload: SegmentPayload;
  resumedBy?: 'tokens' | 'text';
}

/**
 * The tokens of an attempt so far. `heldText` is the end of the text that may begin a stop text. Lists that do not
 * cover every token are left out.
 * @param generated end of the call, whose further fields of the engine are kept; absent: the call still runs
 */
export function toSegment(tokens: TokenBuffer, generated?: Generated): MadeSegment {
  const { stopReason, engineFinishReason, engineFields } = generated?.result ?? {};
  const isFinished = generated !== undefined && 'finishReason' in generated;
  return {
    tokenCount: generated?.tokenCount ?? tokens.count,
    payload: {
      tokenIds: tokens.allIds,
      text: tokens.textFrom(0),
      logprobs: tokens.allLogprobs?.map((logprob) => (Number.isNaN(logprob) ? null : logprob)),
      heldText: tokens.openText || undefined,
      ...(isFinished && { stopReason: tokens.matched ?? stopReason, engineFinishReason }),
      engineFields,
    },
    resumedBy: tokens.resumedBy,
  };
}
