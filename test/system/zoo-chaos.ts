import { setTimeout as delay } from 'node:timers/promises';
import type { EngineDialect } from '@broomwagon/contracts';
import { selectZoo } from '../../lab/engine-simulator/src/test-engine';
import { COMMON, FAILING, PASSING, STOP_MISSING } from '../../lab/engine-simulator/src/zoo/zoo-sets';
import { createRandom, type Chaos } from './chaos';

/**
 * Behaviours that are too slow for thousands of tokens, or end a request: an answer of no dialect, and silence until
 * the deadline of a stream, have tests of their own.
 */
const LEFT_OUT = new Set(['every-byte', 'hung-healthy', 'whole-answer', 'gzip-always']);
const MAX_HITS = 4;
const MAX_AT = 60;

/**
 * Gives one engine after another a pair of behaviours, at random times. Behaviours by which calls fail hit the next few
 * calls of one engine at a time, so that no request meets several of them without a token between.
 * @param leftOut names of behaviours that the callers of the test cannot bear
 * @param always names of behaviours of all engines, also after the end
 * @param seed determines the pairs and the pauses
 */
export function changeBehaviours(
  urls: readonly string[],
  dialect: EngineDialect,
  { seed, leftOut = [], always = [] }: { seed: number; leftOut?: readonly string[]; always?: readonly string[] },
): Chaos {
  const stopping = new AbortController();
  const random = createRandom(seed);
  const pick = (count: number): number => Math.floor(random() * count);
  const names = PASSING.filter(({ dialects, isAboutTools }) => dialects.includes(dialect) && !isAboutTools)
    .map(({ name }) => name)
    .filter((name) => !LEFT_OUT.has(name) && !COMMON.has(name) && !leftOut.includes(name));
  /** Each engine ever misses one way to stop a request alone, or nothing would end a request that began before. */
  const missed = (url: string): string => STOP_MISSING[urls.indexOf(url) % STOP_MISSING.length]!;
  // An engine that is down takes no behaviours.
  const select = (url: string, selection: Parameters<typeof selectZoo>[1]): Promise<boolean> =>
    selectZoo(url, selection).then(
      () => true,
      (error: unknown) => {
        if (error instanceof RangeError) throw error;
        return false;
      },
    );
  let failingUrl: string | undefined;
  let pairs = 0;
  const work = (async () => {
    for (const url of urls) await select(url, { entries: always });
    while (!stopping.signal.aborted) {
      const url = urls[pick(urls.length)]!;
      const drawn = [names[pick(names.length)]!, names[pick(names.length)]!].filter((name) => name !== missed(url));
      const entries = [...new Set([...always, ...drawn])];
      const isFailing = entries.some((name) => FAILING.has(name));
      if (isFailing && failingUrl !== undefined) await select(failingUrl, { entries: always });
      if (isFailing) failingUrl = url;
      const later = entries.filter((name) => !FAILING.has(name));
      if (await select(url, { entries, at: pick(MAX_AT), count: 1 + pick(MAX_HITS), later })) pairs += 1;
      await delay(200 + random() * 500, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    for (const url of urls) await select(url, { entries: always });
  })();
  return {
    async stop() {
      stopping.abort();
      await work;
      return pairs;
    },
  };
}
