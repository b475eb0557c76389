import { addCounters, summariseLedger } from '@broomwagon/policies';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { LedgerSum, type LedgerParts } from './ledger-sum';

const count = fc.nat(1_000_000);
const names = [
  'ended.length.3',
  'ended.length.40',
  'trained.length.40',
  'trained.tokens',
  'waste.cut',
  'trained.span.2',
];
const part = (name: string) => fc.dictionary(fc.constantFrom(...names, name), count);
const ledger: fc.Arbitrary<LedgerParts> = fc.record({ counters: part('batch.sum'), open: part('cut.length.7') });

it('equals at each step the sum of its ledgers from scratch', () => {
  const step = fc.record({ job: fc.nat(4), ledger: fc.option(ledger, { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const sum = new LedgerSum();
      const jobs = new Map<number, LedgerParts>();
      for (const { job, ledger: next } of steps) {
        const before = jobs.get(job);
        if (before !== undefined) sum.remove(before);
        jobs.delete(job);
        if (next !== undefined) {
          sum.add(next);
          jobs.set(job, next);
        }
        const scratch = (of: 'counters' | 'open') => addCounters({}, ...[...jobs.values()].map((one) => one[of]));
        expect(sum.summary()).toEqual(summariseLedger(scratch('counters'), scratch('open')));
      }
    }),
  );
});
