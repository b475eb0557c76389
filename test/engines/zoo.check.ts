import { expect, inject, it } from 'vitest';
import { selectZoo, startEngine } from '../../lab/engine-simulator/src/test-engine';
import { compareBehaviours, observeVllm, VLLM_ENTRIES } from './vllm-behaviours';

const { dialect, model, capabilities } = inject('engine');
const canCompare = dialect === 'vllm' && capabilities.tokenIdsOut && capabilities.tokenize;

it.skipIf(!canCompare)('vLLM behaves as its entries of the zoo', async () => {
  const simulator = await startEngine('vllm', { streamMs: 0 });
  await selectZoo(simulator.url, { entries: VLLM_ENTRIES });
  const zoo = await observeVllm(simulator.url, 'simulated');
  await simulator.close();
  const real = await observeVllm(process.env.REAL_ENGINE_URL!, model, process.env.ENGINE_API_KEY);
  expect(compareBehaviours(real, zoo)).toEqual([]);
});
