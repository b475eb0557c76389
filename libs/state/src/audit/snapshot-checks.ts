import type { JobId } from '@broomwagon/contracts';
import { type Discrepancy, toList, type PoolLook } from './pool-look';

const KEPT_SNAPSHOTS = 2;

/** A snapshot: its header, and the number of groups stored; see audit/views.lua. */
interface SnapshotView {
  tag: string;
  number: string;
  hasHeader: boolean;
  groups: number;
  requests: number;
  held: number;
}
/** A saved group as transitions write it: its hash and the hashes of its requests. */
interface SavedGroup {
  group: { promptRef?: string };
  requests: { state?: string; segments?: string }[];
}

/**
 * Checks that each snapshot of a job is complete, and that none is left over that would never be deleted.
 * @param onRef is called with each payload to which a snapshot refers
 */
export async function checkSnapshots(
  look: PoolLook,
  job: JobId,
  onRef: (owner: string, ref: string) => void,
): Promise<void> {
  const numbers = new Set<string>();
  for await (const names of look.keysBelow(`snapshot-groups:${job}/`)) for (const name of names) numbers.add(name);
  let listed: SnapshotView[] = [];
  await look.compare(
    [job],
    () => [['snapshots', job, [...numbers]]],
    (_, [view]) => {
      const snapshots = view as { listed: unknown; lost: unknown };
      listed = toList<SnapshotView>(snapshots.listed);
      const found = toList<string>(snapshots.lost).map((number): Discrepancy => {
        const where = `${job}/${number}`;
        return { check: 'snapshot-without-job', where, steps: [['call', 'SADD', 'oldSnapshots', where]] };
      });
      if (listed.length > KEPT_SNAPSHOTS) found.push({ check: 'snapshot-not-retired', where: job });
      for (const { tag, number, hasHeader, groups, held } of listed) {
        const where = `${job}/${tag}`;
        if (!hasHeader) found.push({ check: 'snapshot-without-header', where, detail: number });
        else if (groups !== held)
          found.push({ check: 'snapshot-groups', where, detail: `${groups} groups, ${held} stored` });
      }
      return found;
    },
  );
  for (const { tag, number, requests } of listed.filter(
    ({ hasHeader, groups, held }) => hasHeader && groups === held,
  )) {
    const where = `${job}/${tag}`;
    const counted = await countRequests(look, ['snapshotPart', job, number, 'groups'], (ref) => onRef(where, ref));
    // If the snapshot was deleted meanwhile, the next look does not find it, and the finding is not confirmed.
    const detail = `${requests} requests, ${counted} complete ones stored`;
    if (counted !== requests) look.note([{ check: 'snapshot-requests', where, detail }]);
  }
}

/** Number of complete requests in the groups of a snapshot. */
async function countRequests(look: PoolLook, key: readonly [string, ...string[]], onRef: (ref: string) => void) {
  let count = 0;
  for await (const groupIds of look.names(key, 'HSCAN')) {
    for (const [, [json]] of await look.readEach(groupIds, (id) => [['HGET', key, id]])) {
      if (typeof json !== 'string') continue;
      const saved = JSON.parse(json) as SavedGroup;
      onRef(saved.group.promptRef!);
      const whole = saved.requests.filter(({ state }) => state !== undefined);
      for (const { segments = '[]' } of whole) {
        for (const { ref } of JSON.parse(segments) as { ref: string }[]) onRef(ref);
      }
      count += whole.length;
    }
  }
  return count;
}
