import type { Epoch } from '@broomwagon/contracts';
import { createHash } from 'node:crypto';

/** Something that is off. */
export interface Finding {
  /** Which rule is broken, e.g. `lease-not-in-set-of-server`. */
  check: string;
  /** Where: an id. */
  where: string;
  /** What was seen there; a finding is the same again only when this is the same. */
  says: string;
  repaired: boolean;
}

/** Findings of two looks that are in both: what is only on its way in one of them is not wrong. */
export function confirmed(first: readonly Finding[], second: readonly Finding[]): Finding[] {
  const names = new Set(first.map(nameOf));
  const seen = new Set<string>();
  return second.filter((finding) => {
    const name = nameOf(finding);
    if (!names.has(name) || seen.has(name)) return false;
    seen.add(name);
    return true;
  });
}

function nameOf({ check, where, says }: Finding): string {
  return `${check} ${where} ${says}`;
}

/** A number of a record that must be the sum over leases; mended only if the record is still as it was seen. */
export interface Mend {
  finding: Finding;
  mend: () => Promise<{ mended: boolean }>;
}

/** A lease as audit/leases tells it. */
export type PackedLease = [
  acquireId: string,
  seq: number,
  serverId: string,
  serverEpoch: Epoch,
  workerId: string,
  workerEpoch: Epoch,
  sessionId: string,
  groupId: string,
  contextTokens: number,
];

/** Tells apart two equally long lists of leases, so that what is busy is not taken for what is off. */
export function digestOf(leases: readonly PackedLease[]): string {
  const ids = leases.map(([acquireId, seq]) => `${seq}.${acquireId}`).sort();
  return createHash('sha1').update(ids.join(' ')).digest('hex').slice(0, 12);
}

export function groupBy(
  leases: Iterable<PackedLease>,
  nameOf: (lease: PackedLease) => string,
): Map<string, PackedLease[]> {
  const groups = new Map<string, PackedLease[]>();
  for (const lease of leases) {
    const name = nameOf(lease);
    const group = groups.get(name);
    if (group) group.push(lease);
    else groups.set(name, [lease]);
  }
  return groups;
}
