import { Metrics } from '@broomwagon/platform';
import type { PartialStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { Generation } from './generation';
import { PartialSaves } from './partial-saves';

const saved = new Map<string, string>();
const store = {
  find: (_: string, identity: string) => Promise.resolve(saved.get(identity)),
  save: (_: string, identity: string, text: string) => Promise.resolve(void saved.set(identity, text)),
} as unknown as PartialStore;
const saves = () => new PartialSaves(store, new GatewayMetrics(new Metrics('gateway')), new GatewayConfig());
const generation = () =>
  new Generation(
    'r',
    't',
    {
      prompt: { promptTokenIds: [1] },
      sampling: {},
      maxTokens: 9,
      keepsStop: false,
      isContinued: true,
      continuesEngineAborts: false,
      placement: {},
    },
    { kind: 'id', key: 'r', digest: 'd' },
  );

it.each([true, false])('restores whether the engine has reported the weights: %s', async (isReported) => {
  saved.clear();
  const [first, second] = [generation(), generation()];
  const [before, after] = [saves(), saves()];
  await before.begin(first);
  first.restore({ tokenIds: [5, 6], text: 'ab', spans: [], isVersionReported: true });
  first.addSpan('3', 0, 2);
  first.isVersionReported = isReported;
  await before.end(first, true);
  await after.begin(second);
  expect([second.tokens.allIds, second.spans]).toEqual([[5, 6], [{ version: '3', start: 0, end: 2 }]]);
  expect(second.isVersionReported).toBe(isReported);
});
