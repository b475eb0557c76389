/** Engines write it in the place of a character that is not whole. */
export const REPLACEMENT = '\uFFFD';

/**
 * The text of ids as the engine decodes them; undefined if it does not decode. Throws if it does not answer within
 * `timeoutMs`, by default two seconds.
 */
export type Decode = (tokenIds: number[], timeoutMs?: number) => Promise<string | undefined>;

/** The part of a decoded text after a known beginning; undefined: the decoded text begins otherwise. */
export function textAfter(decoded: string, text: string): string | undefined {
  // Decoders of some models drop the space before the first token.
  const [whole, known] = decoded.startsWith(text) ? [decoded, text] : [decoded.trimStart(), text.trimStart()];
  return whole.startsWith(known) ? whole.slice(known.length) : undefined;
}

/** The text without a character that is not whole at its end. */
export function withoutHalf(text: string): string {
  return text.replace(/\uFFFD+$/, '');
}
