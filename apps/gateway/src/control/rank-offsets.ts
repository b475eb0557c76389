import { invalidField, type ServerStatus } from '@broomwagon/contracts';
import type { RankFields } from './control-table';

/**
 * Builds the bodies by which engines join a group of processes. The trainer counts the gateway as one engine: the first
 * rank of the body is the first rank of the first engine, and each further engine starts after the ranks of the engine
 * before.
 * @param askWorldSize reads the number of ranks of an engine; if no engine reports the number, all engines share the
 *   ranks equally
 * @returns a body for each server; undefined if the body has no first rank
 * @throws BroomwagonError VALIDATION_FAILED
 */
export async function bodiesWithRanks(
  { parent, offset, total }: RankFields,
  body: Record<string, unknown>,
  servers: ServerStatus[],
  askWorldSize: (server: ServerStatus) => Promise<number | undefined>,
): Promise<Buffer[] | undefined> {
  const fields = (parent === undefined ? body : body[parent]) as Record<string, unknown> | null | undefined;
  const name = (field: string): string => (parent === undefined ? field : `${parent}.${field}`);
  const first = fields?.[offset];
  if (first === undefined || first === null) return undefined;
  if (!isRank(first)) throw invalidField(name(offset), 'must be a whole number');
  const ranks = fields![total];
  if (!isRank(ranks)) throw invalidField(name(total), 'must be a whole number');
  const sizes = await worldSizes(servers, ranks - first, askWorldSize);
  if (sizes === undefined) {
    const reason = `${ranks - first} ranks cannot be divided among ${servers.length} engines that do not report theirs`;
    throw invalidField(name(total), reason);
  }
  const needed = sizes.reduce((sum, size) => sum + size, 0);
  if (first + needed > ranks) {
    const reason = `the ${servers.length} engines of the pool need ${needed} ranks from ${first}: count all of them`;
    throw invalidField(name(total), reason);
  }
  let rank = first;
  return sizes.map((size) => {
    const ours = { ...fields, [offset]: rank };
    rank += size;
    return Buffer.from(JSON.stringify(parent === undefined ? ours : { ...body, [parent]: ours }));
  });
}

async function worldSizes(
  servers: ServerStatus[],
  ranks: number,
  askWorldSize: (server: ServerStatus) => Promise<number | undefined>,
): Promise<number[] | undefined> {
  const sizes = await Promise.all(servers.map(askWorldSize));
  if (sizes.every((size) => size !== undefined)) return sizes;
  const share = ranks / servers.length;
  const isShared = sizes.every((size) => size === undefined) && Number.isSafeInteger(share) && share > 0;
  return isShared ? servers.map(() => share) : undefined;
}

function isRank(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
