import type { Epoch } from '@broomwagon/contracts';
import { type Discrepancy, toList, type PoolLook, type Step } from './pool-look';

/** A stored lease, with its entries in sets and indexes; see audit/views.lua. */
export interface LeaseView {
  packed: string;
  /** Sequence of the lease; absent when the lease cannot be read. */
  seq?: number;
  serverId: string;
  serverEpoch: Epoch;
  workerId: string;
  workerEpoch: Epoch;
  requestId: string;
  sessionId?: string;
  groupId?: string;
  onServer: boolean;
  onWorker: boolean;
  hasServer: boolean;
  hasWorker: boolean;
  hasSession: boolean;
  isListed: boolean;
}

/**
 * Checks each lease against the sets of its server and worker, the list of its request, their epochs and its session.
 */
export async function checkLeases(look: PoolLook): Promise<LeaseView[]> {
  const all: LeaseView[] = [];
  await look.checkEach<LeaseView>(look.names('leases', 'HSCAN'), 'lease', (where, lease) => {
    if (lease.seq === undefined) return [{ check: 'lease-unreadable', where, detail: lease.packed }];
    all.push(lease);
    return compareLease(lease, where);
  });
  return all;
}

function compareLease(lease: LeaseView, where: string): Discrepancy[] {
  const { serverId, serverEpoch, workerId, workerEpoch, requestId } = lease;
  const [server, worker] = [`server:${serverId}:${serverEpoch}`, `worker:${workerId}:${workerEpoch}`];
  const found: Discrepancy[] = [];
  const expect = (isRight: boolean, check: string, detail = '', ...steps: Step[]) => {
    if (!isRight) found.push({ check, where, detail, steps: steps.length > 0 ? steps : undefined });
  };
  const addTo = (set: Step): Step => ['call', 'SADD', set, where];
  expect(lease.onServer, 'lease-not-in-set-of-server', server, addTo(['serverLeases', serverId, serverEpoch]));
  expect(lease.onWorker, 'lease-not-in-set-of-worker', worker, addTo(['workerLeases', workerId, workerEpoch]));
  expect(lease.isListed, 'lease-not-of-request', requestId, ['listed', requestId, where, true]);
  // A lease of an expired epoch is returned by the sweep, which needs this mark.
  expect(lease.hasServer, 'lease-of-lost-server', server, ['call', 'SADD', 'expiredLeaseEpochs', server]);
  expect(lease.hasWorker, 'lease-of-lost-worker', worker, ['call', 'SADD', 'expiredLeaseEpochs', worker]);
  expect(lease.hasSession, 'lease-of-lost-session', lease.sessionId);
  return found;
}

/** Checks that each entry in the sets of servers and workers has its lease. */
export async function checkLeaseSets(look: PoolLook): Promise<void> {
  for (const kind of ['server', 'worker'] as const) {
    for await (const names of look.keysBelow(`${kind}-leases:`)) {
      for (const name of names) {
        const [id, epoch] = splitOwner(name);
        const isRight = ([view]: unknown[]) => {
          const lease = view as LeaseView | false;
          return lease && lease[`${kind}Id`] === id && lease[`${kind}Epoch`] === epoch;
        };
        await look.checkIndex([`${kind}Leases`, id, epoch], 'SSCAN', `set-of-${kind}-without-lease`, isRight, {
          reads: (acquireId) => [['lease', acquireId]],
          detail: name,
          steps: kind === 'server' ? [['rescore', id, epoch]] : [],
        });
      }
    }
  }
}

interface RequestListView {
  isSet: boolean;
  lost: unknown;
  inSet: number;
}

/** Checks that each entry in the lists of requests has its lease. A list is a text, or a set when it is long. */
export async function checkRequestLists(look: PoolLook): Promise<void> {
  const check = 'request-without-lease';
  const compare = (requestId: string, { isSet, lost, inSet }: RequestListView): Discrepancy[] => {
    const found: Discrepancy[] = toList<string>(lost).map((where) => {
      return { check, where, detail: requestId, steps: [['listed', requestId, where, false]] };
    });
    if (isSet && inSet === 0) {
      found.push({ check, where: requestId, steps: [['call', 'HDEL', 'requestLeases', requestId]] });
    } else if (!isSet && inSet > 0) {
      const steps: Step[] = [['call', 'UNLINK', ['leasesOfRequest', requestId]]];
      found.push({ check: 'request-set-unknown', where: requestId, steps });
    }
    return found;
  };
  await look.checkEach(look.names('requestLeases', 'HSCAN'), 'request_list', compare);
  await look.checkEach(look.keysBelow('request-leases:'), 'request_list', compare);
}

/** Splits `<id>:<epoch>`; an id may contain colons. */
export function splitOwner(name: string): [id: string, epoch: Epoch] {
  const colon = name.lastIndexOf(':');
  return [name.slice(0, colon), name.slice(colon + 1) as Epoch];
}
