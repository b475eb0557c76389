import { setTimeout as delay } from 'node:timers/promises';
import type { TestSystem } from './test-system';

/** Faults that go on until they are stopped. */
export interface Chaos {
  /** Ends them when the process that is down is up again. @returns number of kills or changes */
  stop(): Promise<number>;
}

/**
 * Kills (SIGKILL) one of the named processes after another, at random times, and starts each again a moment later.
 * @param seed determines the order and the pauses
 */
export function killAtRandom(system: TestSystem, names: readonly string[], seed: number): Chaos {
  const stopping = new AbortController();
  const random = createRandom(seed);
  const pause = (ms: number) => delay(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
  let kills = 0;
  const work = (async () => {
    for (;;) {
      await pause(100 + random() * 500);
      if (stopping.signal.aborted) return;
      const victim = system.process(names[Math.floor(random() * names.length)]!);
      victim.kill('SIGKILL');
      await victim.exited;
      kills += 1;
      await pause(random() * 500);
      await victim.start();
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await work;
      return kills;
    },
  };
}

/** Mulberry32: numbers from 0 to 1, the same for the same seed. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
