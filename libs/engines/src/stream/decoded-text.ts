/** Character that engines write in the place of an incomplete character. */
export const REPLACEMENT = '\uFFFD';

/**
 * Decodes token ids by the engine; undefined if the engine does not decode. Throws if the engine does not answer within
 * `timeoutMs`, by default two seconds.
 */
export type Decode = (tokenIds: number[], timeoutMs?: number) => Promise<string | undefined>;

/** The part of a decoded text after a known beginning; undefined: the decoded text has another beginning. */
export function textAfter(decoded: string, text: string): string | undefined {
  // Decoders of some models drop the space before the first token.
  const [whole, known] = decoded.startsWith(text) ? [decoded, text] : [decoded.trimStart(), text.trimStart()];
  return whole.startsWith(known) ? whole.slice(known.length) : undefined;
}

/** The text without an incomplete character at its end. */
export function withoutHalf(text: string): string {
  return text.replace(/\uFFFD+$/, '');
}
