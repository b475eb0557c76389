import { invalidField } from '@broomwagon/contracts';

/** Batch sizes for which engines have captured graphs, the largest first. */
export const DEFAULT_TIERS: readonly number[] = [64, 32, 16, 8, 4];

/** @throws BroomwagonError VALIDATION_FAILED: empty, not whole and positive, or not strictly descending */
export function checkTiers(tiers: readonly number[]): void {
  const problem =
    tiers.length === 0
      ? 'must not be empty'
      : !tiers.every((tier) => Number.isSafeInteger(tier) && tier > 0)
        ? 'must be whole numbers above 0'
        : tiers.some((tier, index) => index > 0 && tier >= (tiers[index - 1] as number))
          ? 'must be sorted, the largest first, each once'
          : undefined;
  if (problem !== undefined) throw invalidField('tiers', problem);
}

/**
 * Returns the smallest tier that holds the batch. A batch above all tiers runs without a graph, and counts with its
 * size.
 */
export function findTier(batch: number, tiers: readonly number[]): number {
  if (batch === 0) return 0;
  let tier = batch;
  for (const size of tiers) {
    if (size < batch) break;
    tier = size;
  }
  return tier;
}

export function highestTier(servers: Iterable<{ readonly load: number }>, tiers: readonly number[]): number {
  let highest = 0;
  for (const { load } of servers) highest = Math.max(highest, findTier(load, tiers));
  return highest;
}
