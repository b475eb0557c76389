import { expect, it } from 'vitest';
import type { PoolEvent } from '@broomwagon/contracts';
import { SampleCollector } from './sample-collector';

const finished = (requestId: string, roundId: string, tokens: number, queuedAtMs?: number) =>
  ({
    type: 'request.finished',
    requestId,
    roundId,
    tokens,
    attemptTokens: tokens,
    atMs: 9_000,
    queuedAtMs,
  }) as unknown as PoolEvent;
const cut = (requestId: string, queuedAtMs: number) =>
  ({ type: 'attempt.ended', requestId, roundId: 'r1', attemptTokens: 5, atMs: 9_000, queuedAtMs }) as PoolEvent;

function collect(events: PoolEvent[], maxGroups?: number) {
  const collector = new SampleCollector(maxGroups);
  for (const event of events) collector.add(event);
  return collector.collected();
}

it('counts a sample once that was thrown away and generated again, with its last length, samples in order', () => {
  const events = [
    ...[1, 0].map((index) => finished(`job/g1/${index}`, 'r1', 10 + index)),
    ...[0, 1].map((index) => finished(`job/g2/${index}`, 'r1', 20 + index)),
    finished('job/g2/1', 'r2', 30),
  ];
  const { groups, samples, partialGroups, longestTokens } = collect(events);
  expect([...groups]).toEqual([
    ['g1', [10, 11]],
    ['g2', [20, 30]],
  ]);
  expect({ samples, partialGroups }).toEqual({ samples: 2, partialGroups: 0 });
  expect([...longestTokens]).toEqual([
    ['r1', 21],
    ['r2', 30],
  ]);
});

it('orders groups by their first time in the queue, cut attempts included', () => {
  const events = [finished('job/late/0', 'r1', 10, 2_000), cut('job/early/0', 1_000)];
  const { groups } = collect([...events, finished('job/early/0', 'r2', 50, 3_000)]);
  expect([...groups.keys()]).toEqual(['early', 'late']);
});

it('leaves out groups with unknown samples, and groups after the maximum', () => {
  const events = [0, 1].map((index) => finished(`job/g1/${index}`, 'r1', 10));
  const { groups, partialGroups } = collect([...events, finished('job/g2/1', 'r1', 10), cut('job/g3/0', 1)], 2);
  expect([[...groups.keys()], partialGroups]).toEqual([['g1'], 1]);
});
