import { RoutingStore, ScriptRunner } from '@broomwagon/state';
import type { Redis } from 'ioredis';

/** A script with the arguments that the store gives it. */
export interface RecordedCall {
  lua: string;
  /** Of the call as recorded; `items` is what changes. */
  args: { items: unknown[] } & Record<string, unknown>;
}

/**
 * The script call that a method of the store makes, taken from the store itself: so what is compared runs the very same
 * script with the very same arguments, whatever becomes of them.
 */
export async function recordCall(use: (store: RoutingStore) => Promise<unknown>): Promise<RecordedCall> {
  let recorded: RecordedCall | undefined;
  const recorder = {
    evalsha: () => Promise.reject(new Error('NOSCRIPT')),
    eval: (lua: string, _keys: number, _key: string, json: string) => {
      recorded = { lua, args: JSON.parse(json) as RecordedCall['args'] };
      return Promise.resolve('{}');
    },
  };
  await use(new RoutingStore(new ScriptRunner(recorder as unknown as Redis, 'recorded')));
  if (recorded === undefined) throw new Error('The store ran no script');
  return recorded;
}

/** Makes the script a command of this connection. */
export function withScript(redis: Redis, lua: string, name: string): (key: string, json: string) => Promise<string> {
  redis.defineCommand(name, { numberOfKeys: 1, lua });
  const command = (redis as unknown as Record<string, (key: string, json: string) => Promise<string>>)[name]!;
  return command.bind(redis);
}
