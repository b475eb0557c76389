import type { Epoch } from '@broomwagon/contracts';
import { groupBy } from './findings';
import { splitOwner, type LeaseView } from './lease-checks';
import { type Discrepancy, type Key, listOf, type PoolLook } from './pool-look';

const SET_CHECK = /^lease-not-in-set/;

/** A session as it is stored. */
interface SessionView {
  packed: string;
  serverId: string;
  epoch: Epoch;
  /** Absent when it cannot be read. */
  leases?: number;
  isIdle: boolean;
}

/** @returns sessions by the `serverId:epoch` they are bound to */
export async function checkSessions(look: PoolLook): Promise<Map<string, Set<string>>> {
  const bound = new Map<string, Set<string>>();
  for await (const ids of look.names('sessions', 'HSCAN')) {
    await look.compare(
      ids,
      (id) => [['session', id]],
      (where, [view]) => {
        const session = view as SessionView | false;
        if (!session) return [];
        const { packed: says, leases } = session;
        if (leases === undefined) return [{ check: 'session-unreadable', where, says }];
        entryOf(bound, `${session.serverId}:${session.epoch}`).add(where);
        if (session.isIdle === leases <= 0) return [];
        return [{ check: 'session-idle', where, says, steps: [['session', where, leases]] }];
      },
    );
  }
  return bound;
}

/** The live workers: the digest of their leases. @returns leases by worker, as their sets have them */
export async function checkWorkers(look: PoolLook, leases: readonly LeaseView[]): Promise<Map<string, number>> {
  const byWorker = groupBy(leases, ({ workerId, workerEpoch }) => `${workerId}:${workerEpoch}`);
  const loads = new Map<string, number>();
  for await (const ids of look.names('workers', 'ZSCAN')) {
    await look.compare(
      ids,
      (id) => [['worker', id]],
      (id, [view]) => {
        const worker = view as { epoch: Epoch; digest: string; load: number; sequences?: unknown } | false;
        if (!worker) return [{ check: 'index-without-worker', where: id, says: 'workers' }];
        loads.set(id, worker.load);
        const where = `${id}:${worker.epoch}`;
        // With very many leases the pages of this look must do, and a second look must find the same.
        if (isSetOff(look, `worker:${where}`)) return [];
        const { sequences = byWorker.get(where)?.map(({ seq }) => seq!) } = worker;
        const sum = listOf<number>(sequences)
          .reduce((total, seq) => total + BigInt(seq), 0n)
          .toString();
        if (sum === worker.digest) return [];
        const says = `${worker.digest}, but its leases give ${sum}`;
        return [{ check: 'worker-digest', where, says, steps: [['call', 'HSET', ['worker', id], 'leaseDigest', sum]] }];
      },
    );
  }
  return loads;
}

type Pair = [right: number, stored: number];

/** Counts of one epoch of a server at one moment; false when its leases are too many. See audit/views.lua. */
type Sums = false | { tokens: Pair; ofSessions: Pair; groups: Record<string, Pair>; sessions: Record<string, Pair> };

/**
 * The counts by server that the policies go by: context tokens, sessions, and the leases of each group; and the leases
 * of each session. Those of a server with more than 1,000 leases are not looked at: no transition reads so many.
 * @param bound sessions by the `serverId:epoch` they are bound to
 */
export async function checkCounters(
  look: PoolLook,
  leases: readonly LeaseView[],
  bound: Map<string, Set<string>>,
): Promise<void> {
  const groups = new Map<string, Set<string>>();
  for await (const groupIds of look.keysBelow('group-leases:')) {
    for (const groupId of groupIds) {
      for await (const names of look.names(['groupLeases', groupId], 'HSCAN')) {
        for (const name of names) entryOf(groups, name).add(groupId);
      }
    }
  }
  const names = new Set([...groups.keys(), ...bound.keys()]);
  for (const { serverId, serverEpoch } of leases) names.add(`${serverId}:${serverEpoch}`);
  for (const hash of ['serverTokens', 'serverSessions']) {
    for await (const page of look.names(hash, 'HSCAN')) for (const name of page) names.add(name);
  }
  const bySession = groupBy(leases, ({ sessionId }) => sessionId);
  await look.compare(
    [...names].filter((name) => !isSetOff(look, `server:${name}`)),
    (name) => [['sums', ...splitOwner(name), [...(bound.get(name) ?? [])], [...(groups.get(name) ?? [])]]],
    (name, [sums]) => compareSums(name, sums as Sums, bySession),
  );
}

function compareSums(name: string, sums: Sums, bySession: Map<string | undefined, LeaseView[]>): Discrepancy[] {
  if (!sums) return [];
  const [id, epoch] = splitOwner(name);
  const found: Discrepancy[] = [];
  const compare = ([right, stored]: Pair, check: string, where: string, hash: Key) => {
    if (right === stored) return;
    const set = right === 0 ? ['HDEL', hash, name] : ['HSET', hash, name, String(right)];
    const says = `${stored}, but leases and sessions give ${right}`;
    found.push({
      check,
      where,
      says,
      steps: [
        ['call', ...set],
        ['rescore', id, epoch],
      ],
    });
  };
  compare(sums.tokens, 'server-tokens', name, 'serverTokens');
  // A session that was cleared is bound to no epoch.
  if (epoch !== '') compare(sums.ofSessions, 'server-sessions', name, 'serverSessions');
  for (const [groupId, pair] of Object.entries(sums.groups)) {
    compare(pair, 'group-leases', `${groupId} on ${name}`, ['groupLeases', groupId]);
  }
  for (const [where, [here, stored]] of Object.entries(sums.sessions)) {
    const isHere = ({ serverId, serverEpoch }: LeaseView) => serverId === id && serverEpoch === epoch;
    const right = here + (bySession.get(where) ?? []).filter((lease) => !isHere(lease)).length;
    if (right === stored) continue;
    const says = `${stored} leases counted on ${name}, ${right} found`;
    found.push({ check: 'session-lease-count', where, says, steps: [['session', where, right]] });
  }
  return found;
}

/** Leases are missing in the set of this owner, so that no sum over it says anything. */
function isSetOff({ findings }: PoolLook, owner: string): boolean {
  return findings.some(({ check, says, repaired }) => SET_CHECK.test(check) && says === owner && !repaired);
}

function entryOf(sets: Map<string, Set<string>>, name: string): Set<string> {
  const entry = sets.get(name) ?? new Set<string>();
  sets.set(name, entry);
  return entry;
}
