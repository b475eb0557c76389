import { isDeepStrictEqual } from 'node:util';
import type { Epoch } from '@broomwagon/contracts';
import { groupBy } from '../library/lists';
import { splitOwner, type LeaseView } from './lease-checks';
import { compareResidency, getEntry, RESIDENT, type ResidencyView } from './residency-checks';
import { type Discrepancy, type Key, toList, type PoolLook, type Read, type Step } from './pool-look';

const SET_CHECK = /^lease-not-in-set/;

interface SessionView extends ResidencyView {
  packed: string;
  serverId: string;
  epoch: Epoch;
  /** Number of leases of the session; absent when the session cannot be read. */
  leases?: number;
  isIdle: boolean;
}

/** Session ids by the `serverId:epoch` to which they are bound, and on which their contexts count. */
export interface SessionPlaces {
  bound: Map<string, Set<string>>;
  resident: Map<string, Set<string>>;
}

export async function checkSessions(look: PoolLook): Promise<SessionPlaces> {
  const bound = new Map<string, Set<string>>();
  const resident = new Map<string, Set<string>>();
  await look.checkEach<SessionView>(look.names('sessions', 'HSCAN'), 'session', (where, session) => {
    const { packed: detail, leases } = session;
    if (leases === undefined) return [{ check: 'session-unreadable', where, detail }];
    const place = `${session.serverId}:${session.epoch}`;
    getEntry(bound, place).add(where);
    if (session.state === RESIDENT) getEntry(resident, place).add(where);
    const found = compareResidency(where, session);
    if (session.isIdle === leases <= 0) return found;
    return [...found, { check: 'session-idle', where, detail, steps: [['session', where, leases]] }];
  });
  return { bound, resident };
}

/** A lease of a server or worker that is read in pages. */
interface OwnLease extends Pick<LeaseView, 'sessionId' | 'groupId'> {
  acquireId: string;
  seq: number;
  surplusTokens: number;
}
type Owner = readonly [kind: 'server' | 'worker', id: string, epoch: Epoch];

/** All leases of a server or worker epoch. */
async function readLeases(look: PoolLook, owner: Owner): Promise<OwnLease[]> {
  const all = new Map<string, OwnLease>();
  for (let cursor: string | undefined; cursor !== '0';) {
    const page = await look.read<{ cursor: string; leases: unknown }>('leases', ...owner, cursor ?? '0');
    for (const lease of toList<OwnLease>(page.leases)) all.set(lease.acquireId, lease);
    ({ cursor } = page);
  }
  return [...all.values()];
}

/** Checks the digests of the leases of live workers. @returns number of leases by worker, by the sizes of their sets */
export async function checkWorkers(look: PoolLook): Promise<Map<string, number>> {
  const loads = new Map<string, number>();
  const large: [id: string, epoch: Epoch][] = [];
  for await (const ids of look.names('workers', 'ZSCAN')) {
    await look.compare(
      ids,
      (id) => [['worker', id]],
      (id, [view]) => {
        const worker = view as { epoch: Epoch; digest: string; load: number; sequences?: unknown } | false;
        if (!worker) return [{ check: 'index-without-worker', where: id, detail: 'workers' }];
        loads.set(id, worker.load);
        if (isSetOff(look, `worker:${id}:${worker.epoch}`)) return [];
        if (worker.sequences) return compareDigest(id, worker.epoch, worker.digest, toList<number>(worker.sequences));
        large.push([id, worker.epoch]);
        return [];
      },
    );
  }
  for (const [id, epoch] of large) {
    await look.whenStill(`worker ${id}`, async () => {
      const mark: Read = ['mark', 'worker', id, epoch];
      const before = await look.read<[load: number, digest: string | false]>(...mark);
      const sequences = (await readLeases(look, ['worker', id, epoch])).map(({ seq }) => seq);
      let isStill = true;
      await look.compare(
        [id],
        () => [mark],
        (_, [now]) => {
          // With more leases than the mark has, a lease was granted and returned between the two marks.
          isStill = isDeepStrictEqual(now, before) && sequences.length === before[0];
          return isStill ? compareDigest(id, epoch, before[1] || '0', sequences) : [];
        },
      );
      return isStill;
    });
  }
  return loads;
}

function compareDigest(id: string, epoch: Epoch, digest: string, sequences: readonly number[]): Discrepancy[] {
  const sum = sequences.reduce((total, seq) => total + BigInt(seq), 0n).toString();
  if (sum === digest) return [];
  const detail = `${digest}, but its leases give ${sum}`;
  const steps: Step[] = [['call', 'HSET', ['worker', id], 'leaseDigest', sum]];
  return [{ check: 'worker-digest', where: `${id}:${epoch}`, detail, steps }];
}

type Pair = [right: number, stored: number];

/** Counts of one server epoch at one moment; false when it has too many leases. See audit/views.lua. */
type Sums = false | { tokens: Pair; ofSessions: Pair; groups: Record<string, Pair>; sessions: Record<string, Pair> };

/**
 * Checks the counts by server that routing policies use: context tokens, sessions, and the leases of each group. Checks
 * the number of leases of each session too.
 * @param bound session ids by the `serverId:epoch` to which they are bound
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
        for (const name of names) getEntry(groups, name).add(groupId);
      }
    }
  }
  const names = new Set([...groups.keys(), ...bound.keys()]);
  for (const { serverId, serverEpoch } of leases) names.add(`${serverId}:${serverEpoch}`);
  for (const hash of ['serverTokens', 'serverSessions']) {
    for await (const page of look.names(hash, 'HSCAN')) for (const name of page) names.add(name);
  }
  const bySession = groupBy(leases, ({ sessionId }) => sessionId);
  const large = new Set<string>();
  await look.compare(
    [...names].filter((name) => !isSetOff(look, `server:${name}`)),
    (name) => [['sums', ...splitOwner(name), [...(bound.get(name) ?? [])], [...(groups.get(name) ?? [])]]],
    (name, [answer]) => {
      const sums = answer as Sums;
      if (!sums) {
        large.add(name);
        return [];
      }
      return [
        ...compareSum(name, tokenSum, sums.tokens),
        ...compareSum(name, sessionSum, sums.ofSessions),
        ...Object.entries(sums.groups).flatMap(([id, pair]) => compareSum(name, groupSum(id), pair)),
        ...Object.entries(sums.sessions).flatMap(([id, [here, stored]]) =>
          compareSession(name, id, [here + elsewhere(bySession.get(id), name), stored]),
        ),
      ];
    },
  );
  for (const name of large) {
    const [sessionIds, groupIds] = [bound.get(name) ?? [], groups.get(name) ?? []];
    await look.whenStill(`server ${name}`, () => checkLarge(look, name, [...sessionIds], [...groupIds], bySession));
  }
}

/** Checks the counts of a server with more leases than one transition reads. False when its leases have changed. */
async function checkLarge(
  look: PoolLook,
  name: string,
  sessionIds: readonly string[],
  groupIds: readonly string[],
  bySession: Map<string | undefined, LeaseView[]>,
): Promise<boolean> {
  const [id, epoch] = splitOwner(name);
  const mark: Read = ['mark', 'server', id, epoch];
  const before = await look.read(...mark);
  const leases = await readLeases(look, ['server', id, epoch]);
  const groups = groupBy(leases, ({ groupId }) => groupId);
  const sessions = groupBy(leases, ({ sessionId }) => sessionId);
  const withSession = leases.filter(({ sessionId }) => sessionId !== undefined).length;
  const named = listNames(sessions, sessionIds);
  const views = await look.readEach(named, (session) => [['session', session]]);
  const boundHere = views.filter(([, [view]]) => isBoundTo(view as SessionView | false, name)).length;
  const sums: { read: Read; compare: (stored: unknown) => Discrepancy[] }[] = [
    {
      read: ['HGET', 'serverTokens', name],
      sum: tokenSum,
      right: leases.reduce((all, one) => all + one.surplusTokens, 0),
    },
    { read: ['HGET', 'serverSessions', name], sum: sessionSum, right: boundHere - withSession },
    ...listNames(groups, groupIds).map((group) => ({
      read: ['HGET', ['groupLeases', group], name] as Read,
      sum: groupSum(group),
      right: groups.get(group)?.length ?? 0,
    })),
  ].map(({ read, sum, right }) => ({
    read: read as Read,
    compare: (stored) => compareSum(name, sum, [right, Number(stored || 0)]),
  }));
  for (const session of named) {
    const right = (sessions.get(session)?.length ?? 0) + elsewhere(bySession.get(session), name);
    const compare = (view: unknown) => {
      const stored = view as SessionView | false;
      return isBoundTo(stored, name) ? compareSession(name, session, [right, stored.leases ?? 0]) : [];
    };
    sums.push({ read: ['session', session], compare });
  }
  let isStill = true;
  await look.compare(
    sums,
    ({ read }) => [mark, read],
    ({ compare }, [now, stored]) => {
      if (isDeepStrictEqual(now, before)) return compare(stored);
      isStill = false;
      return [];
    },
  );
  return isStill;
}

const listNames = (found: Map<string | undefined, unknown>, known: readonly string[]): string[] => [
  ...new Set([...known, ...[...found.keys()].filter((one) => one !== undefined)]),
];

function isBoundTo(session: SessionView | false, name: string): session is SessionView {
  return session !== false && `${session.serverId}:${session.epoch}` === name;
}

/** Number of these leases that are on other servers. */
function elsewhere(leases: readonly LeaseView[] = [], name: string): number {
  return leases.filter(({ serverId, serverEpoch }) => `${serverId}:${serverEpoch}` !== name).length;
}

/** A sum of a server: the name of its check, the place for the finding, and the hash that stores it. */
type Sum = (name: string) => { check: string; where: string; hash: Key };
const tokenSum: Sum = (name) => ({ check: 'server-tokens', where: name, hash: 'serverTokens' });
const sessionSum: Sum = (name) => ({ check: 'server-sessions', where: name, hash: 'serverSessions' });
const groupSum =
  (groupId: string): Sum =>
  (name) => ({ check: 'group-leases', where: `${groupId} on ${name}`, hash: ['groupLeases', groupId] });

function compareSum(name: string, sum: Sum, [right, stored]: Pair): Discrepancy[] {
  const [id, epoch] = splitOwner(name);
  // A session that was cleared is bound to no epoch.
  if (right === stored || (epoch === '' && sum === sessionSum)) return [];
  const { hash, ...what } = sum(name);
  const set = right === 0 ? ['HDEL', hash, name] : ['HSET', hash, name, String(right)];
  const detail = `${stored}, but leases and sessions give ${right}`;
  const steps: Step[] = [
    ['call', ...set],
    ['rescore', id, epoch],
  ];
  return [{ ...what, detail, steps }];
}

function compareSession(name: string, where: string, [right, stored]: Pair): Discrepancy[] {
  if (right === stored) return [];
  const detail = `${stored} leases counted on ${name}, ${right} found`;
  return [{ check: 'session-lease-count', where, detail, steps: [['session', where, right]] }];
}

/** True when the set of this server or worker lacks leases, so that no sum over it is valid. */
function isSetOff({ findings }: PoolLook, owner: string): boolean {
  return findings.some(({ check, detail, repaired }) => SET_CHECK.test(check) && detail === owner && !repaired);
}
