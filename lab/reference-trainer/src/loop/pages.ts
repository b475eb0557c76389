/** Pages of at most `size` items; at least one, which may be empty. */
export function splitPages<T>(items: readonly T[], size: number): T[][] {
  const pages: T[][] = [];
  for (let start = 0; start === 0 || start < items.length; start += size) pages.push(items.slice(start, start + size));
  return pages;
}
