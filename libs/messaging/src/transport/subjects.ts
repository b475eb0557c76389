import { NO_POOL, buildPattern } from '@broomwagon/contracts';

/** Pools that a service serves: all, or the named ones. */
export type Pools = '*' | readonly string[];

/** Callers of a pool that no service serves send it for {@link NO_POOL}. */
const OF_ANY_POOL = buildPattern('pool.find');

/** Index of the pool in `rollout.v1.<pool>.…`; -1 for a subject that has no pool. */
export function findPoolToken(pattern: string): number {
  return pattern.split('.').indexOf('*');
}

/**
 * The subjects to subscribe to for a declared pattern: the first `*` is the pool, `{name}` is a value of this process
 * (as in `rollout.v1.*.worker.{workerId}.abort`).
 * @throws Error when a placeholder has no value
 */
export function buildSubjects(pattern: string, pools: Pools, placeholders: Readonly<Record<string, string>>): string[] {
  const filled = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = placeholders[name];
    if (value === undefined) {
      throw new Error(`The subject ${pattern} needs a value for {${name}}`);
    }
    return value;
  });
  if (pools === '*' || findPoolToken(pattern) < 0) return [filled];
  const served = pattern === OF_ANY_POOL ? [...pools, NO_POOL] : pools;
  return served.map((pool) => filled.replace('*', pool));
}
