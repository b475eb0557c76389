/** An entry of `output_token_logprobs`: log probability, token id, text or null. */
export type LogprobEntry = [number | null, number, string | null];

/** Tokens of the response before a chunk, and including the chunk. */
export interface ChunkCounts {
  before: number;
  total: number;
}

/**
 * The token ids that a chunk adds. `ids` has all ids or only the new ids, whichever fits the counts. Otherwise the
 * entries of the log probabilities have the ids (the chunk of an abort has one id and all entries).
 * @returns undefined if neither fits the counts
 */
export function newTokenIds(
  ids: number[],
  entries: LogprobEntry[] | undefined,
  { before, total }: ChunkCounts,
): number[] | undefined {
  const count = total - before;
  if (ids.length === count) return ids;
  if (ids.length === total) return ids.slice(before);
  return newEntries(entries, { before, total })?.map(([, id]) => id);
}

/**
 * Entries of new tokens; undefined if the entries do not fit the counts. Some versions repeat the entries of all
 * tokens.
 */
export function newEntries(
  entries: LogprobEntry[] | undefined,
  { before, total }: ChunkCounts,
): LogprobEntry[] | undefined {
  if (entries?.length === total) return entries.slice(before);
  return entries?.length === total - before ? entries : undefined;
}
