import type { LedgerSummary } from '@broomwagon/contracts';
import { addCounters, type LedgerCounters, summariseLedger } from '@broomwagon/policies';

/** The parts of a ledger that are summed. */
export interface LedgerParts {
  readonly counters: LedgerCounters;
  /** Counters of samples that have not ended. */
  readonly open: LedgerCounters;
}

/**
 * Sum of ledgers. A changed ledger is removed and added again, so that no other ledger is read. The counters are whole
 * numbers, so the sum stays exact.
 */
export class LedgerSum {
  private readonly counters: LedgerCounters = {};
  private readonly open: LedgerCounters = {};
  private known?: LedgerSummary;

  add({ counters, open }: LedgerParts): void {
    addCounters(this.counters, counters);
    addCounters(this.open, open);
    this.known = undefined;
  }

  /** Removes a ledger. Its counters must be equal to the counters at its `add`. */
  remove({ counters, open }: LedgerParts): void {
    subtract(this.counters, counters);
    subtract(this.open, open);
    this.known = undefined;
  }

  /** Summary of all samples of all ledgers. */
  summary(): LedgerSummary {
    return (this.known ??= summariseLedger(this.counters, this.open));
  }
}

/** Subtracts counters, and deletes each counter at zero, so that names of deleted jobs do not pile up. */
function subtract(from: LedgerCounters, part: LedgerCounters): void {
  for (const [name, count] of Object.entries(part)) {
    const left = (Object.hasOwn(from, name) ? from[name]! : 0) - count;
    if (left === 0) delete from[name];
    else from[name] = left;
  }
}
