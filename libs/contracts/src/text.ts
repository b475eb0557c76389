/**
 * The first `most` characters of a text, counted in code points, so that no character is cut in two. Half a surrogate
 * pair becomes U+FFFD: neither Redis nor most JSON parsers take one.
 */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text.toWellFormed();
  // A character has at most two UTF-16 units.
  return Array.from(text.slice(0, 2 * most).toWellFormed())
    .slice(0, most)
    .join('');
}

/** Sorts texts by their UTF-16 code units. Other values do not compile: `sort()` would compare their texts. */
export function sortTexts<Text extends string>(texts: Iterable<Text>): Text[] {
  return [...texts].sort();
}
