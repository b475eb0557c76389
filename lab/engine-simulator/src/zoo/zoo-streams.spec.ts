import { crc32 } from 'node:zlib';
import type { EngineDialect } from '@broomwagon/contracts';
import { waitUntil } from '@broomwagon/testing';
import * as fc from 'fast-check';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { inEngine, selectZoo, startEngine, fetchState } from '../test-engine';
import { findSampleFaults } from './sample-faults';
import { ZOO } from './zoo';
import { runSample, type ZooOutcome, type ZooSample } from './zoo-run';
import { mayLackLogprobs, STOP_ENTRIES, STOP_MISSING } from './zoo-sets';

type Engine = Awaited<ReturnType<typeof startEngine>>;

const DIALECTS: EngineDialect[] = ['vllm', 'sglang', 'openai'];
const LENGTH = 24;
/** Runs of pairs: `ZOO_RUNS=10000 TEST_SEED=7 npm run test:one -- lab/engine-simulator/src/zoo/zoo-streams.spec.ts`. */
const RUNS = Number(process.env.ZOO_RUNS ?? (inject('runsFactor') === 1 ? 45 : 300));
/** Behaviours that one call can show; restarted servers have tests of their own. */
const ENTRIES = ZOO.filter(({ server }) => server?.restart === undefined);

/** Engines without a sample, by dialect. Samples mostly wait, so that many run side by side, each on its own engine. */
const free = new Map<EngineDialect, Engine[]>(DIALECTS.map((dialect) => [dialect, []]));
const lengths = { name: 'test', getLength: () => LENGTH };
const start = (dialect: EngineDialect) => startEngine(dialect, { lengths, streamMs: 0 });
afterAll(() => Promise.all([...free.values()].flat().map((engine) => engine.close())));

type Draw = Omit<ZooSample, 'url' | 'prompt' | 'sampling'> & { stopAt?: number };

/** Runs a sample on a free engine of its dialect. */
async function checkSample(draw: Draw): Promise<ZooOutcome> {
  const engines = free.get(draw.dialect)!;
  const engine = engines.pop() ?? (await start(draw.dialect));
  try {
    return await checkOn(engine.url, draw);
  } finally {
    engines.push(engine);
  }
}

/** Runs a sample with and without behaviours, and compares both results. */
async function checkOn(url: string, draw: Draw): Promise<ZooOutcome> {
  // The prompt follows from the draw, in whichever order tests run.
  const number = crc32(JSON.stringify(draw)) % 100_000;
  const prompt = draw.dialect === 'openai' ? { text: `zoo ${number}` } : { promptTokenIds: [5, 6, number] };
  const sampling = { seed: 3, logprobs: true };
  const plain = { entries: [], cuts: [], maxTokens: undefined, streamInterval: undefined };
  const truth = await runSample({ ...draw, url, prompt, sampling, ...plain });
  const stop = draw.entries.some((name) => STOP_ENTRIES.has(name)) && findStop(truth.text, draw.stopAt);
  const found = await runSample({ ...draw, url, prompt, sampling: { ...sampling, ...(stop && { stop: [stop] }) } });

  const hasIds = draw.dialect !== 'openai';
  const sample = { ...found, tokenIds: hasIds ? found.tokenIds : undefined };
  const { entries, maxTokens } = draw;
  const asked = { maxTokens, mayLackLogprobs: mayLackLogprobs(entries), ...(stop && { stop }) };
  expect(findSampleFaults(sample, { ...truth, ...asked })).toEqual([]);
  if (stop && found.finishReason === 'stop') expect(found.stopReason).toBe(stop);
  if (hasIds) expect(found.tokenCount).toBe(found.tokenIds.length);
  if (hasIds && found.usage !== undefined) expect(found.usage).toBe(found.lastCall);
  const isEmpty = async (): Promise<boolean> => (await inEngine(url)) === 0;
  await waitUntil(isEmpty, { what: 'an empty engine', timeoutMs: 30_000, intervalMs: 5 });
  expect((await fetchState(url)).resumeMismatches).toBe(0);
  return found;
}

/** Returns a stop text that starts in one token and ends in the next. */
function findStop(text: string, at = 0): string {
  const words = text.split(/(?= t)/);
  const index = 1 + (at % (words.length - 3));
  return words[index]!.slice(-2) + words[index + 1]!.slice(0, 4);
}

const PLAIN = { hits: 1, stopAt: 9 };
/** Bytes from one disconnection to the next. */
const DISCONNECTION_STEP = inject('runsFactor') === 1 ? 37 : 1;
const DISCONNECTED_BYTES = 900;

describe.concurrent.each(DIALECTS)('%s', (dialect) => {
  it.each(ENTRIES.filter(({ dialects }) => dialects.includes(dialect)))(
    '$name changes no token of a sample that is cut',
    async ({ name, failure }) => {
      // The first call must not be cut, or it would not fail.
      const cuts = failure === undefined ? [3, 5] : [Infinity, 5];
      const { ends } = await checkSample({ ...PLAIN, dialect, entries: [name], at: 7, cuts });
      expect(ends[0]).toBe(failure ?? 'aborted');
    },
  );

  const halves = ENTRIES.filter(
    ({ dialects, endsWithinCharacters }) => endsWithinCharacters && dialects.includes(dialect),
  );
  if (halves.length > 0) {
    it.each(halves)('$name changes no token of a sample, after whichever token it is cut', async ({ name }) => {
      for (let cut = 1; cut < LENGTH; cut++) {
        await Promise.all([
          checkSample({ ...PLAIN, dialect, entries: [name], at: 0, cuts: [cut] }),
          // A chunk of several tokens may end within a character, too.
          checkSample({ ...PLAIN, dialect, entries: [name, 'stream-interval'], at: 0, cuts: [cut, cut] }),
        ]);
      }
    });
  }

  it('no interval changes a token of a sample, wherever it is cut', async () => {
    for (let streamInterval = 2; streamInterval <= LENGTH + 1; streamInterval++) {
      const entries = dialect === 'openai' ? [] : [`${dialect}-half-characters`];
      const checks = [[], [1], [streamInterval], [LENGTH - 1, 2]].map((cuts) =>
        checkSample({ ...PLAIN, dialect, entries, at: 0, cuts, streamInterval }),
      );
      await Promise.all(checks);
    }
  });

  it('a disconnection at any byte changes no token', async () => {
    for (let at = 0; at < DISCONNECTED_BYTES; at += DISCONNECTION_STEP) {
      await checkSample({ ...PLAIN, dialect, entries: ['cut-at-byte'], at, cuts: [] });
    }
  });
});

it('pairs of behaviours change no token of a sample, wherever it is cut', { timeout: RUNS * 5_000 }, async () => {
  const draw = fc.constantFrom(...DIALECTS).chain((dialect) => {
    const drawn = ENTRIES.filter(({ dialects, isAlone }) => dialects.includes(dialect) && !isAlone);
    const names = drawn.map(({ name }) => name);
    return fc.record({
      dialect: fc.constant(dialect),
      entries: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 2 }),
      at: fc.nat({ max: 400 }).map((at) => (at % 3 === 0 ? at : at % LENGTH)),
      hits: fc.integer({ min: 1, max: 3 }),
      cuts: fc.array(fc.integer({ min: 1, max: LENGTH }), { maxLength: 3 }),
      stopAt: fc.nat({ max: LENGTH }),
      maxTokens: fc.option(fc.integer({ min: 1, max: LENGTH + 2 }), { nil: undefined, freq: 1 }),
      streamInterval: fc.option(fc.integer({ min: 1, max: LENGTH + 2 }), { nil: undefined }),
    });
  });
  await fc.assert(
    fc.asyncProperty(draw, async (sample) => void (await checkSample(sample))),
    {
      seed: inject('seed'),
      numRuns: RUNS,
      endOnFailure: true,
    },
  );
});

it.each(['vllm', 'sglang'] as const)('a %s engine that ends no request early runs each to its end', async (dialect) => {
  await checkSample({ ...PLAIN, dialect, entries: [...STOP_MISSING], at: 0, cuts: [5, 5] });
});

it('a behaviour that does not exist is refused', async () => {
  const engine = await start('vllm');
  try {
    await expect(selectZoo(engine.url, { entries: ['nothing'] })).rejects.toThrow('nothing');
  } finally {
    await engine.close();
  }
});
