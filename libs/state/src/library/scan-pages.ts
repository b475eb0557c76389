/** Pages of a scan, one after the other: its cursor is `0` to begin, and at the end. */
export async function* scanPages<Page extends { cursor: string }>(
  load: (cursor: string) => Promise<Page>,
): AsyncGenerator<Page> {
  let cursor = '0';
  do {
    const page = await load(cursor);
    yield page;
    ({ cursor } = page);
  } while (cursor !== '0');
}
