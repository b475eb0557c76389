import type { Claim, CompleteItem } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());
beforeEach(() => fixture.freshPool());

async function begin(count: number) {
  const { round } = await fixture.openRound({ name: 'wait', overProvision: 1 }, count);
  await fixture.call('round.submit', { ...round, groups: groups(count, 0, 1) });
  const worker = await fixture.worker('worker');
  return { round, worker, claims: await worker.claim(count) };
}

async function finished(claim: Claim): Promise<CompleteItem> {
  await fixture.put(claim, 'tokens');
  const { requestId, attempt } = claim;
  return { requestId, attempt, finishReason: 'stop', segment: fixture.buildSegment(claim, 3) };
}

it('completes each sample, when others are fenced, not stored, of another request or of a request that is unknown', async () => {
  const { round, worker, claims } = await begin(4);
  const all = await Promise.all(claims.map(finished));
  const [first, second, third, fourth] = all as [CompleteItem, CompleteItem, CompleteItem, CompleteItem];
  const lost = { ...fixture.buildSegment(claims[2]!, 3), ref: `${third.segment!.ref}-lost` };
  const completes: CompleteItem[] = [
    first,
    { ...second, attempt: '9-a', segment: { ...second.segment!, attempt: '9-a' } },
    { ...third, segment: lost },
    { ...fourth, segment: { ...fourth.segment!, ref: first.segment!.ref } },
    { requestId: 'never/g0/0', attempt: '1-a', finishReason: 'stop' },
  ];
  const { results } = await fixture.call('request.complete-many', { ...worker.identity, completes });
  expect(results).toMatchObject([
    { state: 'finished', groupAccepted: true, roundCompleted: false },
    { error: { code: 'FENCED', field: 'attempt', retryable: false } },
    { error: { code: 'PAYLOAD_NOT_FOUND', field: 'segment.ref' } },
    { error: { code: 'PAYLOAD_FOREIGN' } },
    { error: { code: 'REQUEST_NOT_FOUND', field: 'requestId' } },
  ]);
  // A repeat changes nothing, and samples that were refused can be completed.
  const rest = await fixture.call('request.complete-many', { ...worker.identity, completes: all });
  expect(rest.results.map((result) => 'state' in result && result.state)).toEqual(Array(4).fill('finished'));
  const { groups: read, complete } = await fixture.call('round.results', round);
  expect(complete).toBe(true);
  expect(read.flatMap(({ samples }) => samples).map(({ tokenCount }) => tokenCount)).toEqual([3, 3, 3, 3]);
});
