/** A page of the results of a round. */
interface Page<Group> {
  groups: readonly Group[];
  cursor: string;
  complete: boolean;
}

/**
 * Reads the results of a round as far as they exist.
 * @param read a page behind a cursor
 * @returns the groups, and the cursor of the last page, which `round.close` needs
 */
export async function readToEnd<Group>(
  read: (cursor?: string) => Promise<Page<Group>>,
): Promise<{ groups: Group[]; cursor: string }> {
  const groups: Group[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await read(cursor);
    groups.push(...page.groups);
    ({ cursor } = page);
    if (page.complete || page.groups.length === 0) return { groups, cursor };
  }
}
