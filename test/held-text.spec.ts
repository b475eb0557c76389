import type { SegmentPayload } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { SEED, trueSample } from './system/data-set';
import { ServiceBench } from './system/service-bench';

const JOB = 'job';
const TOKENS = 5;
const PROMPT = { text: 'What comes last?' };
let bench: ServiceBench;

beforeAll(async () => {
  bench = await ServiceBench.open();
});
afterEach(() => bench.end());
afterAll(() => bench.close());

const call: ServiceBench['client']['call'] = (...args) => bench.client.call(...args);

it('ends a response with the text that a worker held back before it ended, without further tokens', async () => {
  await bench.begin();
  const whole = trueSample(JOB, { id: 'g', line: 1, prompt: PROMPT, samples: 1, lengths: [TOKENS] }, 0);
  const heldText = whole.text.slice(-3);
  const round = { job: JOB, roundId: 'r1' };
  const plan = { planId: '1-short-1-1-0', step: 1, kind: 'short' as const };
  const counts = { neededGroups: 1, newGroups: 1, takeGroups: 0, weightVersion: 0 };
  const policy = { name: 'resume' as const, overProvision: 1 };
  const { trainerEpoch } = await call(bench.pool, 'round.open', { ...round, ...plan, ...counts, policy });
  const sampling = { seed: SEED, stop: [`${heldText}, the stop text`] };
  const groups = [{ groupId: 'g', samples: 1, maxTokens: TOKENS, prompt: PROMPT, sampling }];
  await call(bench.pool, 'round.submit', { ...round, trainerEpoch, groups });

  // A worker that has all tokens ends. Its last text may begin a stop text.
  const registration = { workerId: 'ends', registrationId: 'ends', ttlMs: 60_000 };
  const { workerEpoch } = await call(bench.pool, 'worker.register', registration);
  const worker = { workerId: 'ends', workerEpoch };
  const { claims } = await call(bench.pool, 'request.claim', { claimId: 'claim', ...worker, max: 1 });
  const { requestId, attempt } = claims[0]!;
  const payload: SegmentPayload = { tokenIds: whole.tokenIds, text: whole.text.slice(0, -3), heldText };
  const data = Buffer.from(JSON.stringify(payload)).toString('base64');
  const name = { job: JOB, requestId, name: 'saved', chunkIndex: 0, chunkCount: 1 };
  const { ref } = await call(bench.pool, 'payload.put', { ...name, data });
  const server = { serverId: 's1', serverEpoch: 'e1', weightVersion: 0 };
  const segment = { attempt, ...server, tokenCount: TOKENS, ref: ref! };
  const failure = { requestId, attempt, ...worker, reason: 'shutdown' as const, retryable: true };
  await call(bench.pool, 'request.fail', { ...failure, segment });

  await bench.startWorker();
  const results = async () => (await call(bench.pool, 'round.results', round)).groups;
  await expect.poll(async () => (await results()).length).toBe(1);
  const sample = (await results())[0]!.samples[0]!;
  expect(sample).toMatchObject({ finishReason: 'length', tokenCount: TOKENS });
  const parts = await Promise.all(
    sample.segments.map(async (made) => {
      const stored = Buffer.from((await call(bench.pool, 'payload.get', { ref: made.ref })).data, 'base64');
      return JSON.parse(stored.toString()) as SegmentPayload;
    }),
  );
  expect(parts.flatMap(({ tokenIds }) => tokenIds)).toEqual(whole.tokenIds);
  expect(parts.map(({ text }) => text).join('')).toBe(whole.text);
  expect(await bench.findings()).toEqual([]);
});
