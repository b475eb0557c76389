/**
 * The ledger of a round or a job: whole numbers by name, each only ever added to. So a sample is folded in by a few
 * `HINCRBY`, and the ledgers of rounds, jobs or replicas are merged by adding them, in any order.
 */
export type LedgerCounters = Record<string, number>;

/** Adds to `into`, and gives it back. */
export function addCounters(into: LedgerCounters, ...parts: readonly LedgerCounters[]): LedgerCounters {
  for (const part of parts) {
    for (const [name, count] of Object.entries(part)) {
      into[name] = (Object.hasOwn(into, name) ? into[name]! : 0) + count;
    }
  }
  return into;
}
