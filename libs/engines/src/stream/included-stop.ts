import type { TokenIncrement } from '../engine-adapter';

/**
 * A response whose engine was asked to send the stop text that ends it. vLLM withholds as many characters as a stop
 * text has otherwise, but not their ids, so that a response that is cut there has ids without text.
 */
export interface IncludedStop {
  stops: readonly string[];
  /** Texts of the stop token ids of the request: engines include these too. */
  tokenTexts: ReadonlyMap<number, string>;
  /** Special tokens are part of the text, and so is the token that ends the response. */
  hasSpecialTokens: boolean;
}

/** Marks the last increment with its stop text, or removes the text of the stop token from it. */
export function markStop(increment: TokenIncrement, reason: string | number | undefined, stop: IncludedStop): void {
  if (typeof reason === 'string') {
    if (stop.stops.includes(reason)) increment.matchedStop = reason;
    return;
  }
  const { text, tokenIds, tokenCount } = increment;
  if (reason === undefined && !stop.hasSpecialTokens) return;
  // An engine that leaves the stop token out of the ids leaves it out of the text too.
  if (reason !== undefined && tokenIds !== undefined && tokenIds.at(-1) !== Number(reason)) return;
  const ending = stop.tokenTexts.get(Number(reason ?? tokenIds?.at(-1))) ?? '';
  // One token alone is the stop token, with all its text.
  const length = tokenCount === 1 ? text.length : text.endsWith(ending) ? ending.length : 0;
  if (length > 0) removeEnd(increment, length);
}

function removeEnd(increment: TokenIncrement, length: number): void {
  increment.text = increment.text.slice(0, -length);
  const { choice } = increment;
  if (typeof choice?.delta?.content !== 'string') return;
  const { content } = choice.delta;
  increment.choice = { ...choice, delta: { ...choice.delta, content: content.slice(0, -length) } };
}
