/**
 * Returns the first `most` characters of a text, counted in code points, so that no character is cut in two. Half a
 * surrogate pair becomes U+FFFD, because Redis and most JSON parsers refuse halves.
 */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text.toWellFormed();
  // A character has at most two UTF-16 units.
  return Array.from(text.slice(0, 2 * most).toWellFormed())
    .slice(0, most)
    .join('');
}

/**
 * Sorts texts by their UTF-16 code units. Values of other types do not compile, because `sort()` would compare them as
 * texts.
 */
export function sortTexts<Text extends string>(texts: Iterable<Text>): Text[] {
  return [...texts].sort();
}
