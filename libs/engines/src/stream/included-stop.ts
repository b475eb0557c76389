import type { TokenIncrement } from '../engine-adapter';

/**
 * A response whose engine was asked to send the stop text at its end. Otherwise vLLM withholds as many characters as a
 * stop text has, but not their ids: a response that is cut there has ids without text.
 */
export interface IncludedStop {
  stops: readonly string[];
  /** Texts of the stop token ids of the request, which engines include too. */
  tokenTexts: ReadonlyMap<number, string>;
  /** The text contains special tokens, and the token that ends the response. */
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
  // A single token is the stop token, and has all of the text.
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
