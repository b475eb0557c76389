import { afterEach, beforeEach, expect, it } from 'vitest';
import { selectZoo, startEngine } from '../lab/engine-simulator/src/test-engine';
import { ZOO } from '../lab/engine-simulator/src/zoo/zoo';
import { compareBehaviours, findAbsent, observeVllm, UNOBSERVED, VLLM_ENTRIES } from './engines/vllm-behaviours';

let engines: Awaited<ReturnType<typeof startEngine>>[];
beforeEach(async () => {
  const options = { lengths: { name: 'test', getLength: () => 100 }, streamMs: 0 };
  engines = [await startEngine('vllm', options), await startEngine('vllm', options)];
});
afterEach(() => Promise.all(engines.map((engine) => engine.close())));

/** Differences between an engine with some entries and an engine with all entries of vLLM. */
async function compare(entries: readonly string[]): Promise<string[]> {
  const [real, zoo] = engines as [(typeof engines)[0], (typeof engines)[0]];
  await selectZoo(real.url, { entries });
  await selectZoo(zoo.url, { entries: VLLM_ENTRIES });
  const [behaviours, claimed] = [await observeVllm(real.url, 'simulated'), await observeVllm(zoo.url, 'simulated')];
  const stopEnd = { text: 'before', reason: 'stop', stopReason: 'the stop text' };
  expect(claimed).toEqual({
    'vllm-stop-withheld': 7,
    withheldWithIncludedStop: 0,
    stopEnd,
    includedStopEnd: { ...stopEnd, text: 'with' },
    'vllm-half-characters': true,
    'usage-in-each-chunk': true,
    finalChunks: 1,
    endsWithLastToken: true,
    endsWithDone: true,
  });
  return compareBehaviours(behaviours, claimed);
}

it('finds no difference between engines with the same behaviours', async () => {
  expect(await compare(VLLM_ENTRIES)).toEqual([]);
});

it.each([
  ['vllm-stop-withheld', VLLM_ENTRIES.filter((name) => name !== 'vllm-stop-withheld')],
  ['finalChunks', [...VLLM_ENTRIES, 'two-final-chunks']],
  ['endsWithDone', [...VLLM_ENTRIES, 'missing-done']],
])('finds that the engine differs in %s', async (behaviour, entries) => {
  expect((await compare(entries)).map((difference) => difference.split(':')[0])).toContain(behaviour);
});

it('compares an engine with each entry that names vLLM, or has a reason why not', () => {
  const named = ZOO.filter(({ dialects, release }) => dialects.includes('vllm') && release.includes('vLLM'));
  expect([...VLLM_ENTRIES, ...Object.keys(UNOBSERVED)].toSorted()).toEqual(named.map(({ name }) => name).toSorted());
});

it('finds each behaviour that an entry claims for the release of an engine, and that the engine does not show', async () => {
  const [real] = engines as [(typeof engines)[0]];
  await selectZoo(real.url, { entries: ['vllm-half-characters'] });
  const seen = await observeVllm(real.url, 'simulated');
  const claim = (release: string, version: string) =>
    findAbsent(seen, version, [{ ...ZOO.find(({ name }) => name === 'vllm-stop-withheld')!, release }]).length > 0;
  expect(findAbsent(seen, '0.32.0').map((absent) => absent.split(':')[0])).toEqual(['vllm-stop-withheld']);
  expect(claim('vLLM from 0.7', '0.7.0')).toBe(true);
  expect(claim('vLLM from 0.7.2, also in August', '0.10')).toBe(true);
  expect(claim('vLLM from 0.7.2', '0.7.1')).toBe(false);
  expect(claim('vLLM from 1.0', '0.32.0')).toBe(false);
  expect(claim('vLLM 0.32.0, proxies', '0.32.0')).toBe(true);
  expect(claim('vLLM 0.32.0, proxies', '0.32')).toBe(false);
  expect(claim('SGLang', '0.32.0')).toBe(false);
  await selectZoo(real.url, { entries: VLLM_ENTRIES });
  expect(findAbsent(await observeVllm(real.url, 'simulated'), '0.32.0')).toEqual([]);
});
