import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { FunctionRunner, type Transition } from './function-runner';

/** What every store is made of. */
@Injectable()
export class TransitionStore {
  constructor(protected readonly runner: FunctionRunner) {}
}

/** A transition as a method: the pool first, then its arguments unless all are optional. */
type MethodOf<T> =
  T extends Transition<infer Args, infer Reply>
    ? (pool: PoolName, ...args: object extends Args ? [args?: Args] : [args: Args]) => Promise<Reply>
    : never;

/**
 * Base class of a store with one method for each transition of a table. Each method throws BroomwagonError with the
 * codes that the header of its transition lists, or UNAVAILABLE.
 */
export function storeOf<Table extends Record<string, Transition<never, unknown>>>(
  table: Table,
): new (runner: FunctionRunner) => TransitionStore & { [Name in keyof Table]: MethodOf<Table[Name]> } {
  class Store extends TransitionStore {}
  for (const [name, target] of Object.entries(table) as [string, Transition<object, unknown>][]) {
    const value = function (this: Store, pool: PoolName, args: object = {}) {
      return this.runner.run(target, pool, args);
    };
    Object.defineProperty(Store.prototype, name, { value, writable: true, configurable: true });
  }
  return Store as ReturnType<typeof storeOf<Table>>;
}
