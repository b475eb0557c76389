import type { SegmentPayload } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ServiceBench } from './system/service-bench';

const EXPERTS = { layers: 2, perToken: 3, engine: 1 };
const ROW_BYTES = EXPERTS.layers * EXPERTS.perToken * Int32Array.BYTES_PER_ELEMENT;
const PROMPT = [11, 12, 13];
const TOKENS = 400;
const ROUND = { job: 'job', roundId: 'r1' };

let bench: ServiceBench;
beforeAll(async () => {
  bench = await ServiceBench.open({}, 1);
});
afterAll(() => bench.close());
beforeEach(() => bench.begin(() => TOKENS, 4, 'sglang', { experts: EXPERTS }));
afterEach(() => bench.end());

it('keeps the routed experts of each part of a sample that new weights have cut', async () => {
  const { client, pool } = bench;
  await bench.register({ dialect: 'sglang' });
  const trainerEpoch = await bench.openRound(1);
  const prompt = { promptTokenIds: PROMPT, engineFields: { return_routed_experts: true } };
  const groups = [{ groupId: 'g', samples: 1, maxTokens: TOKENS, prompt }];
  await client.call(pool, 'round.submit', { ...ROUND, trainerEpoch, groups });
  await bench.startWorker();
  await bench.running(1);
  await bench.made(5);
  const sync = { syncId: 'sync', version: 1, mode: 'abort' as const, waitMs: 10_000 };
  await client.call(pool, 'weights.begin', sync, { timeoutMs: 20_000 });
  await bench.register({ dialect: 'sglang', weightVersion: 1 });
  await client.call(pool, 'weights.commit', { syncId: 'sync' });

  const accepted = async () => (await client.call(pool, 'round.results', ROUND)).groups;
  await expect.poll(accepted).toHaveLength(1);
  const { segments } = (await accepted())[0]!.samples[0]!;
  expect(segments.map(({ weightVersion }) => weightVersion)).toEqual([0, 1]);
  let tokens = PROMPT.length;
  for (const { ref, tokenCount } of segments) {
    const { data } = await client.call(pool, 'payload.get', { ref });
    const { engineFields } = JSON.parse(Buffer.from(data, 'base64').toString('utf8')) as SegmentPayload;
    tokens += tokenCount;
    // Each token has a row but the last, which was in no step of the engine yet.
    expect(Buffer.from(String(engineFields?.routed_experts), 'base64').length).toBe((tokens - 1) * ROW_BYTES);
  }
  expect(tokens).toBe(PROMPT.length + TOKENS);
});
