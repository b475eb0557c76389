import { expect, inject, it } from 'vitest';
import { selectZoo, startEngine } from '../../lab/engine-simulator/src/test-engine';
import { compareBehaviours, findAbsent, observeVllm, readVersion, VLLM_ENTRIES } from './vllm-behaviours';

const { dialect, model, capabilities } = inject('engine');
const canCompare = dialect === 'vllm' && capabilities.tokenIdsOut && capabilities.tokenize;

it.skipIf(!canCompare)('vLLM shows all behaviours that its entries of the zoo claim for its release', async () => {
  const simulator = await startEngine('vllm', { streamMs: 0 });
  await selectZoo(simulator.url, { entries: VLLM_ENTRIES });
  const zoo = await observeVllm(simulator.url, 'simulated');
  await simulator.close();
  const [url, apiKey] = [process.env.REAL_ENGINE_URL!, process.env.ENGINE_API_KEY];
  const real = await observeVllm(url, model, apiKey);
  const version = await readVersion(url, apiKey);
  console.log(`vLLM ${version}: ${JSON.stringify(real)}`);
  expect(findAbsent(real, version)).toEqual([]);
  expect(compareBehaviours(real, zoo)).toEqual([]);
});
