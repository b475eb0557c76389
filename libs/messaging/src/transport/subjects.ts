import { NO_POOL, buildPattern } from '@broomwagon/contracts';

/** Pools that a service serves: all, or the named ones. */
export type Pools = '*' | readonly string[];

/** Operation that callers send with {@link NO_POOL} if no service serves their pool. */
const OF_ANY_POOL = buildPattern('pool.find');

/** Returns the index of the pool in a pattern such as `rollout.v1.*.lb.acquire`; -1 for a pattern without a pool. */
export function findPoolToken(pattern: string): number {
  return pattern.split('.').indexOf('*');
}

/**
 * Returns the subjects to subscribe to for a declared pattern, for example `rollout.v1.*.worker.{workerId}.abort`. The
 * first `*` stands for the pool, `{name}` for a value of this process.
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
