import type { Epoch } from '@broomwagon/contracts';
import { splitOwner } from './lease-checks';
import type { Discrepancy, PoolLook, Step } from './pool-look';

/** State of a session whose context counts on its server, see sessions/binding-record.lua. */
export const RESIDENT = 'r';
/** Before the ids of servers in the hash of sums, see sessions/residency.lua. */
const CAPACITY = '=';

/** KV memory of a session, with its entries in indexes; without a context if the session needs no admission. */
export interface ResidencyView {
  serverId: string;
  epoch: Epoch;
  leases?: number;
  context?: number;
  state?: string;
  sinceMs?: number;
  isPaused?: boolean;
  isAway?: boolean;
}

/** Compares a session with the indexes of paused sessions and of resident sessions without a call. */
export function compareResidency(where: string, session: ResidencyView): Discrepancy[] {
  const { serverId, epoch, leases = 0, context, state, sinceMs = 0, isPaused, isAway } = session;
  if (context === undefined) return [];
  const found: Discrepancy[] = [];
  const expect = (isListed: boolean | undefined, isRight: boolean, check: string, key: Step[number]) => {
    if (isListed === isRight) return;
    const step: Step = isRight ? ['call', 'ZADD', key, String(sinceMs), where] : ['call', 'ZREM', key, where];
    found.push({ check, where, detail: `state ${state}, ${leases} leases`, steps: [step] });
  };
  expect(isPaused, state !== RESIDENT, 'session-paused', 'pausedSessions');
  // The entry of a session that has a call again stays until the index is read.
  const mayStay = state === RESIDENT && leases > 0;
  if (!mayStay) expect(isAway, state === RESIDENT, 'session-away', ['awaySessions', serverId, epoch]);
  return found;
}

type Pair = [right: number, stored: number];
type Residency = false | { tokens: Pair; growth: Pair; families: Record<string, Pair> };

/**
 * Checks the sums of KV memory by server, the families of sessions, and the entries of the indexes of sessions.
 * @param resident session ids by the `serverId:epoch` on which their contexts count
 */
export async function checkResidency(look: PoolLook, resident: Map<string, Set<string>>): Promise<void> {
  const families = new Map<string, Set<string>>();
  for await (const ids of look.keysBelow('session-family:')) {
    for (const family of ids) {
      for await (const names of look.names(['sessionFamily', family], 'HSCAN')) {
        for (const name of names) if (name !== 'shared') getEntry(families, name).add(family);
      }
    }
  }
  const servers = new Set([...resident.keys(), ...families.keys()]);
  for await (const names of look.names('serverKv', 'HSCAN')) {
    for (const name of names) if (!name.startsWith(CAPACITY)) servers.add(name);
  }
  const list = (sets: Map<string, Set<string>>, name: string) => [...(sets.get(name) ?? [])];
  await look.compare(
    [...servers],
    (name) => [['residency', ...splitOwner(name), list(resident, name), list(families, name)]],
    (name, [answer]) => {
      const view = answer as Residency;
      if (view) return compareSums(name, view);
      look.unproven.push(`KV memory of server ${name}`);
      return [];
    },
  );
  const isThere = ([view]: unknown[]) => view !== false;
  const reads = (id: string) => [['session', id] as const];
  await look.checkIndex('pausedSessions', 'ZSCAN', 'paused-without-session', isThere, { reads });
  for await (const names of look.keysBelow('sessions-away:')) {
    for (const detail of names) {
      const key = ['awaySessions', ...splitOwner(detail)] as const;
      await look.checkIndex(key, 'ZSCAN', 'away-without-session', isThere, { reads, detail });
    }
  }
}

function compareSums(name: string, { tokens, growth, families }: Exclude<Residency, false>): Discrepancy[] {
  const [id, epoch] = splitOwner(name);
  const found: Discrepancy[] = [];
  if (tokens[0] !== tokens[1] || growth[0] !== growth[1]) {
    const steps: Step[] = [
      ['residency', id, epoch, tokens[0], growth[0]],
      ['rescore', id, epoch],
    ];
    const detail = `${tokens[1]} tokens, growth ${growth[1]}, but its sessions give ${tokens[0]} and ${growth[0]}`;
    found.push({ check: 'server-kv', where: name, detail, steps });
  }
  for (const [family, [here, counted]] of Object.entries(families)) {
    if (here === counted) continue;
    const key = ['sessionFamily', family];
    const set: Step = here === 0 ? ['call', 'HDEL', key, name] : ['call', 'HSET', key, name, String(here)];
    const detail = `${counted}, but its sessions give ${here}`;
    found.push({ check: 'session-family', where: `${family} on ${name}`, detail, steps: [set] });
  }
  return found;
}

export function getEntry(sets: Map<string, Set<string>>, name: string): Set<string> {
  const entry = sets.get(name) ?? new Set<string>();
  sets.set(name, entry);
  return entry;
}
