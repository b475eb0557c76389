import type { LedgerSummary } from '@broomwagon/contracts';
import { addCounters, type LedgerCounters, summariseLedger } from '@broomwagon/policies';

/** What is added of a ledger. */
export interface LedgerParts {
  readonly counters: LedgerCounters;
  /** Of samples that have not ended. */
  readonly open: LedgerCounters;
}

/**
 * Ledgers added together. One that changes is taken out and put in again, whatever the number of the others; the
 * counters are whole numbers, so nothing drifts.
 */
export class LedgerSum {
  private readonly counters: LedgerCounters = {};
  private readonly open: LedgerCounters = {};
  private known?: LedgerSummary;

  /** Puts a ledger in. */
  add({ counters, open }: LedgerParts): void {
    addCounters(this.counters, counters);
    addCounters(this.open, open);
    this.known = undefined;
  }

  /** Takes a ledger out that was put in as it is here. */
  remove({ counters, open }: LedgerParts): void {
    subtract(this.counters, counters);
    subtract(this.open, open);
    this.known = undefined;
  }

  /** Of all samples together. */
  summary(): LedgerSummary {
    return (this.known ??= summariseLedger(this.counters, this.open));
  }
}

/** A counter that nothing is left of goes: names of deleted jobs do not pile up. */
function subtract(from: LedgerCounters, part: LedgerCounters): void {
  for (const [name, count] of Object.entries(part)) {
    const left = (Object.hasOwn(from, name) ? from[name]! : 0) - count;
    if (left === 0) delete from[name];
    else from[name] = left;
  }
}
