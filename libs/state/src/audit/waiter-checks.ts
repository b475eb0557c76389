import type { Discrepancy, PoolLook } from './pool-look';

/** A parked acquire, with its entries in its lane and in the index of deadlines; see audit/views.lua. */
interface WaiterView {
  lane: string;
  score: string;
  stands: string | false;
  hasDeadline: boolean;
  hasLease: boolean;
}

/** Checks the parked acquires against their lanes and deadlines, and lanes and deadlines against the acquires. */
export async function checkWaiters(look: PoolLook): Promise<void> {
  await look.checkEach<WaiterView>(look.names('acquireWaiters', 'HSCAN'), 'waiter', (where, waiter) => {
    const { lane: detail, score, stands, hasDeadline, hasLease } = waiter;
    const found: Discrepancy[] = [];
    if (!hasDeadline || stands === false || Number(stands) !== Number(score)) {
      found.push({ check: 'waiter-not-in-lane', where, detail, steps: [['park', where]] });
    }
    if (hasLease) found.push({ check: 'waiter-with-lease', where, detail });
    return found;
  });
  const reads = (id: string) => [['waiter', id] as const];
  await look.checkIndex('acquireDeadlines', 'ZSCAN', 'deadline-without-waiter', ([view]) => view !== false, { reads });
  for await (const lanes of look.keysBelow('waiters:lane:')) {
    for (const detail of lanes) {
      const isRight = ([view]: unknown[]) => view !== false && (view as WaiterView).lane === detail;
      await look.checkIndex(['serverLane', detail], 'ZSCAN', 'lane-without-waiter', isRight, { reads, detail });
    }
  }
}
