import * as fc from 'fast-check';
import type { Pair } from './routing-model.fixture';

/** One step of a run. */
export type Command = fc.AsyncCommand<object, Pair>;
/** A command that runs on script and model, after which the counts are compared. */
export function command(name: string, run: (pair: Pair) => Promise<void>): Command {
  return {
    check: () => true,
    async run(_, pair) {
      await run(pair);
      await pair.compareCounts();
    },
    toString: () => name,
  };
}

/** Value that is undefined nine times out of ten. */
export const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
export const serverId = fc.constantFrom('s1', 's2', 's3', 's4');
export const workerId = fc.constantFrom('w:1', 'w:2');
export const acquireId = fc.integer({ min: 1, max: 40 }).map((n) => `a${n}`);
