import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { FunctionRunner, type PagedArgs, type PassedArgs, type Transition } from './function-runner';

/** Base of every store. */
@Injectable()
export class TransitionStore {
  constructor(protected readonly runner: FunctionRunner) {}

  /** Latest stamp of the pool in any reply to this process. */
  seenStamp(pool: PoolName): string | undefined {
    return this.runner.stamps.of(pool);
  }
}

type AnyPage = { cursor?: unknown; more: boolean };
type AnyTransition = Transition<object, AnyPage>;
type Table = Record<string, Transition<never, unknown>>;
type ArgsOf<T> = T extends Transition<infer Args, unknown> ? Args : never;
type ReplyOf<T> = T extends Transition<never, infer Reply> ? Reply : never;
/** Arguments of a method: the pool, then the arguments of the transition, which may be absent if all are optional. */
type CallOf<Args> = [pool: PoolName, ...args: object extends Args ? [args?: Args] : [args: Args]];
/** Names of the transitions whose replies have this field. */
type NamesWith<T, Field> = { [Name in keyof T]: ReplyOf<T[Name]> extends Field ? Name : never }[keyof T];

type Methods<T extends Table> = {
  [Name in keyof T]: (...call: CallOf<PassedArgs<ArgsOf<T[Name]>>>) => Promise<ReplyOf<T[Name]>>;
};
interface Pages<T extends Table> {
  /** Calls a transition with the cursor of each reply until a reply has none. */
  pages<Name extends NamesWith<T, { cursor?: unknown }>>(
    name: Name,
    ...call: CallOf<PagedArgs<ArgsOf<T[Name]>>>
  ): AsyncGenerator<ReplyOf<T[Name]>>;
  /** Calls a transition as long as it replies that there is `more`. */
  whileMore<Name extends NamesWith<T, { more: boolean }>>(
    name: Name,
    ...call: CallOf<PassedArgs<ArgsOf<T[Name]>>>
  ): AsyncGenerator<ReplyOf<T[Name]>>;
}

/**
 * Base class of a store with one method for each transition of a table. Each method throws BroomwagonError with the
 * codes that the header of its transition lists, or UNAVAILABLE.
 */
export function createStoreClass<T extends Table>(
  table: T,
): new (runner: FunctionRunner) => TransitionStore & Methods<T> & Pages<T> {
  const targets = table as Record<string, Transition<never, unknown>> as Record<string, AnyTransition>;
  class Store extends TransitionStore {
    async *pages(name: string, pool: PoolName, args: object = {}) {
      let cursor: unknown;
      do {
        const page = await toMethods(this)[name]!(pool, { ...args, cursor });
        yield page;
        ({ cursor } = page);
      } while (cursor !== undefined);
    }

    async *whileMore(name: string, pool: PoolName, args: object = {}) {
      for (let more = true; more;) {
        const page = await toMethods(this)[name]!(pool, args);
        yield page;
        ({ more } = page);
      }
    }
  }
  for (const [name, target] of Object.entries(targets)) {
    const value = function (this: Store, pool: PoolName, args: object = {}) {
      return this.runner.run(target, pool, args);
    };
    Object.defineProperty(Store.prototype, name, { value, writable: true, configurable: true });
  }
  return Store as unknown as ReturnType<typeof createStoreClass<T>>;
}

function toMethods(store: TransitionStore) {
  return store as unknown as Record<string, (pool: PoolName, args: object) => Promise<AnyPage>>;
}
