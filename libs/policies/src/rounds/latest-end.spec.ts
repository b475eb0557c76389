import { describe, expect, it } from 'vitest';
import { computeLatestEnd, type LatestEnd, type OpenRequest, type RoundNeed } from './latest-end';

const running = (requestId: string, more: Partial<OpenRequest> = {}): OpenRequest => ({
  requestId,
  groupId: requestId.split('/')[0]!,
  state: 'running',
  tokenCount: 500,
  maxTokens: 1_000,
  tokensPerSecond: 50,
  ...more,
});
const ALL: RoundNeed = { missingGroups: 2, hasReserved: false };
const SLOW = running('c/0', { tokensPerSecond: 1 });
const REQUESTS = [running('a/0'), running('a/1', { tokenCount: 900 }), running('b/0', { tokenCount: 0 })];
const format = (end: LatestEnd) => [end.inMs ?? end.unknown, end.request?.requestId];

describe('the latest end of a round', () => {
  it.each<[string, OpenRequest[], Partial<RoundNeed>, ReturnType<typeof format>]>([
    ['the slowest request reaches its budget', REQUESTS, {}, [20_000, 'b/0']],
    [
      'tokens since the last report count',
      [running('a/0'), running('b/0', { tokenCount: 0, tokensAgeMs: 3_000 })],
      {},
      [17_000, 'b/0'],
    ],
    ['of three groups the two fastest are needed', [...REQUESTS, SLOW], {}, [20_000, 'b/0']],
    ['a reserved place may be of the slowest group', [...REQUESTS, SLOW], { hasReserved: true }, [500_000, 'c/0']],
    [
      'a request without a speed has the median speed',
      [...REQUESTS, running('b/1', { tokenCount: 0, maxTokens: 2_000, tokensPerSecond: undefined })],
      {},
      [40_000, 'b/1'],
    ],
    [
      'no request has a speed',
      [running('a/0', { tokensPerSecond: undefined }), running('b/0', { tokensPerSecond: undefined })],
      {},
      ['speed', 'b/0'],
    ],
    ['a request waits for a worker', [...REQUESTS, running('b/1', { state: 'pending' })], {}, ['worker', 'b/1']],
    ['a request waits for a server', [...REQUESTS, running('b/1', { state: 'claimed' })], {}, ['server', 'b/1']],
    ['a request is being stopped', [...REQUESTS, running('b/1', { state: 'cutting' })], {}, ['stopping', 'b/1']],
    ['a request gets no tokens', [...REQUESTS, running('b/1', { isSilent: true })], {}, ['silent', 'b/1']],
    [
      'the budget of a request is unknown',
      [...REQUESTS, running('b/1', { maxTokens: undefined })],
      {},
      ['limit', 'b/1'],
    ],
    ['a waiting group that is not needed', [...REQUESTS, running('c/0', { state: 'pending' })], {}, [20_000, 'b/0']],
    ['the trainer has not submitted all groups', REQUESTS, { missingGroups: 3 }, ['groups', undefined]],
    ['the deadline of the policy comes first', REQUESTS, { deadlineInMs: 5_000 }, [5_000, undefined]],
    ['the deadline comes later', REQUESTS, { deadlineInMs: 50_000 }, [20_000, 'b/0']],
    [
      'the deadline bounds an unknown end',
      [running('a/0', { state: 'pending' })],
      { deadlineInMs: 5_000 },
      [5_000, undefined],
    ],
    ['no group is missing', [], { missingGroups: 0 }, [0, undefined]],
  ])('is known, or has a reason: %s', (_, requests, need, expected) => {
    expect(format(computeLatestEnd(requests, { ...ALL, ...need }))).toEqual(expected);
  });
});
