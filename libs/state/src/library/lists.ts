import { LIMITS } from '@broomwagon/contracts';

/** Groups items by name, in their order. */
export function groupBy<Item, Name>(items: Iterable<Item>, nameOf: (item: Item) => Name): Map<Name, Item[]> {
  const groups = new Map<Name, Item[]>();
  for (const item of items) {
    const group = groups.get(nameOf(item));
    if (group) group.push(item);
    else groups.set(nameOf(item), [item]);
  }
  return groups;
}

export function splitPages<T>(list: readonly T[], size: number = LIMITS.page): T[][] {
  const pages: T[][] = [];
  for (let start = 0; start < list.length; start += size) pages.push(list.slice(start, start + size));
  return pages;
}
