import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestPools } from './test-pools.fixture';

const test = new TestPools();
beforeAll(() => test.fresh());
afterAll(() => test.close());

it('stores the finish reason of the engine, and none for a worker that does not report it', async () => {
  const round = await test.open({ policy: { name: 'wait' }, neededGroups: 1, samples: 2 });
  const [first, second] = await test.claim();
  await test.requests.complete(test.pool, {
    ...test.fence(first!),
    tokens: 0,
    finishReason: 'stop',
    engineFinishReason: 'tool_calls',
  });
  await test.complete(second!);
  const { groups } = await test.rounds.results(test.pool, { ...round, limit: 128 });
  const samples = groups[0]!.samples.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
  expect(samples).toMatchObject([
    { sampleIndex: first!.sampleIndex, finishReason: 'stop', engineFinishReason: 'tool_calls' },
    { sampleIndex: second!.sampleIndex, finishReason: 'stop' },
  ]);
  expect(samples[1]).not.toHaveProperty('engineFinishReason');
});
