import { expect, it } from 'vitest';
import type { PoolEvent } from '@broomwagon/contracts';
import { RecordedSamples } from './recorded-samples';

const finished = (requestId: string, roundId: string, tokens: number) =>
  ({ type: 'request.finished', requestId, roundId, tokens, attemptTokens: tokens, atMs: 0 }) as unknown as PoolEvent;

it('counts a sample once that was thrown away and generated again, with its last length', () => {
  const samples = new RecordedSamples();
  for (const index of [0, 1]) samples.add(finished(`job/g1/${index}`, 'r1', 10));
  for (const index of [0, 1]) samples.add(finished(`job/g2/${index}`, 'r1', 20 + index));
  samples.add(finished('job/g2/1', 'r2', 30));
  expect(samples.recording()).toMatchObject({
    groups: [
      [10, 10],
      [20, 30],
    ],
    partialGroups: 0,
  });
});
