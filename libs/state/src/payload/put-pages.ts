import { LIMITS } from '@broomwagon/contracts';
import { groupBy } from '../library/lists';
import type { PayloadName } from './payload-ref';

/** A payload to store. */
export interface NewPayload {
  payload: PayloadName;
  bytes: Buffer;
}

/**
 * Stores payloads in pages: each page is of one job, with at most 128 payloads of 256 kB together, or one larger one.
 * @param putPage stores a page; returns the reference of each payload, or its error
 * @returns the same for all payloads, in their order. Never throws
 */
export async function putPages(
  payloads: readonly NewPayload[],
  putPage: (page: readonly NewPayload[]) => Promise<(string | Error)[]>,
): Promise<(string | Error)[]> {
  const results: (string | Error)[] = [];
  const jobs = groupBy(payloads.keys(), (index) => `${payloads[index]!.payload.pool}/${payloads[index]!.payload.job}`);
  const pages = [...jobs.values()].flatMap((indexes) =>
    splitByBytes(indexes, (index) => payloads[index]!.bytes.length),
  );
  await Promise.all(
    pages.map(async (page) => {
      const answers = await putPage(page.map((index) => payloads[index]!)).catch((error: Error) => error);
      for (const [place, index] of page.entries()) {
        results[index] = answers instanceof Error ? answers : answers[place]!;
      }
    }),
  );
  return results;
}

function splitByBytes<Item>(items: readonly Item[], bytesOf: (item: Item) => number): Item[][] {
  const pages: Item[][] = [];
  let left = -1;
  for (const item of items) {
    left -= bytesOf(item);
    if (left < 0 || pages.at(-1)!.length === LIMITS.page) {
      pages.push([]);
      left = LIMITS.payloadChunkBytes - bytesOf(item);
    }
    pages.at(-1)!.push(item);
  }
  return pages;
}
