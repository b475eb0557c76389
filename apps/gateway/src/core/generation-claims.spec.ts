import { BroomwagonError } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { PartialClaim, PartialClaimReply, PartialOwnerStore, PartialSave, PartialStore } from '@broomwagon/state';
import { beforeEach, describe, expect, it } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';
import { GenerationClaims } from './generation-claims';
import { PartialSaves } from './partial-saves';
import type { GenerationEnd } from './response-parts';

const ABORTED: GenerationEnd = { reason: 'abort', message: 'Aborted by the client' };
const EPOCHS = ['e1', 'e2'].map((workerEpoch) => ({ workerId: 'w', workerEpoch }));

let claimed: PartialClaim[];
let released: string[];
let saved: string | undefined;
/** Answers a claim that was made. */
let answer: (generation: Generation) => PartialClaimReply;
let generation: Generation;
let claims: GenerationClaims;

beforeEach(() => {
  [claimed, released] = [[], []];
  generation = new Generation('r', 't', INPUT, { kind: 'id', key: 'r', digest: 'd' });
  const owners = {
    claim: async (_: string, claim: PartialClaim) => {
      claimed.push(claim);
      return answer(generation);
    },
    release: async (_: string, { generation: uid }: { generation: string }) => void released.push(uid),
  } as unknown as PartialOwnerStore;
  const save = async (_pool: string, [{ partial }]: [PartialSave]) => [void (saved = partial)];
  const store = { save } as unknown as PartialStore;
  const [config, metrics] = [new GatewayConfig(), new GatewayMetrics(new Metrics('gateway'))];
  claims = new GenerationClaims(owners, new PartialSaves(store, metrics, config), metrics, config);
});

function unanswered(stopped: Generation): never {
  stopped.stop('abort');
  throw new BroomwagonError('UNAVAILABLE', 'Redis does not answer');
}

it('releases a claim whose answer was lost: Redis may have executed it', async () => {
  answer = unanswered;
  expect(await claims.take(generation, EPOCHS[0]!)).toBeUndefined();
  await claims.end(generation, ABORTED);
  expect(released).toEqual([generation.uid]);
});

it('releases a claim of an epoch that has ended, if the generation ends before it claims again', async () => {
  answer = () => ({ state: 'claimed' });
  await claims.take(generation, EPOCHS[0]!);
  generation.stop('abort');
  await claims.take(generation, EPOCHS[1]!);
  expect(claimed).toHaveLength(1);
  await claims.end(generation, ABORTED);
  expect(released).toEqual([generation.uid]);
});

it('does not release the claim of another generation', async () => {
  answer = () => ({ state: 'other' });
  expect(await claims.take(generation, EPOCHS[0]!)).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  await claims.end(generation, ABORTED);
  expect(released).toEqual([]);
});

it('claims a request without clients, under each epoch, so that another replica may take it over', async () => {
  answer = () => ({ state: 'claimed' });
  await claims.setUnread(generation, true);
  expect(claimed).toEqual([]);
  for (const epoch of EPOCHS) await claims.take(generation, epoch);
  await claims.setUnread(generation, false);
  expect(claimed.map(({ workerEpoch, isUnread }) => [workerEpoch, isUnread])).toEqual([
    ['e1', true],
    ['e2', true],
    ['e2', false],
  ]);
});

it.each(['ends unread', 'has ended before its client goes'])(
  'keeps the claim of a response that %s until it leaves the registry',
  async (when) => {
    answer = () => ({ state: 'claimed' });
    const end: GenerationEnd = { reason: 'length' };
    await claims.take(generation, EPOCHS[0]!);
    if (when === 'ends unread') await claims.setUnread(generation, true);
    await claims.end(generation, end);
    generation.finish(end);
    if (when !== 'ends unread') {
      expect(released).toEqual([generation.uid]);
      released = [];
      await claims.setUnread(generation, true);
    }
    expect([claimed.map(({ isUnread }) => isUnread), released]).toEqual([[false, true], []]);
    expect(JSON.parse(saved!)).toMatchObject({ digest: 'd', whole: { end, tokenCount: 0 } });
    await claims.setUnread(generation, false);
    expect([claimed.at(-1)!.isUnread, released]).toEqual([false, []]);
    await claims.forget(generation);
    expect(released).toEqual([generation.uid]);
  },
);

describe('choices of one request', () => {
  let first: Generation;
  let second: Generation;
  beforeEach(() => {
    [first, second] = ['r-0', 'r-1'].map(
      (id) => new Generation(id, 't', INPUT, { kind: 'id', key: id, digest: 'd' }, undefined, 'r'),
    ) as [Generation, Generation];
    claims.joinChoices([first, second]);
  });

  it('claim after the first choice, which keeps its claim until all have ended', async () => {
    answer = () => ({ state: 'claimed' });
    const later = claims.take(second, EPOCHS[0]!);
    await claims.take(first, EPOCHS[0]!);
    await later;
    expect(claimed.map((claim) => claim.generation)).toEqual([first.uid, second.uid]);
    await claims.end(first, ABORTED);
    expect(released).toEqual([]);
    await claims.end(second, ABORTED);
    expect(released).toEqual([second.uid, first.uid]);
  });

  it('may be taken over from a client that has disconnected, also a first choice that has ended', async () => {
    answer = () => ({ state: 'claimed' });
    for (const one of [first, second]) await claims.take(one, EPOCHS[0]!);
    await claims.end(first, ABORTED);
    for (const one of [first, second]) await claims.setUnread(one, true);
    expect(claimed.slice(2).map((claim) => [claim.generation, claim.isUnread])).toEqual([
      [first.uid, true],
      [second.uid, true],
    ]);
    for (const one of [first, second]) {
      one.stop('abort');
      await claims.forget(one);
    }
    await claims.end(second, ABORTED);
    await claims.setUnread(first, false);
    expect([claimed.length, released]).toEqual([4, [second.uid, first.uid]]);
  });

  it('are refused with the first choice', async () => {
    answer = () => ({ state: 'ended' });
    const later = claims.take(second, EPOCHS[0]!);
    const refusal = await claims.take(first, EPOCHS[0]!);
    expect(refusal).toMatchObject({ code: 'REQUEST_IN_PROGRESS', retryable: true });
    expect([await later, claimed.length]).toEqual([refusal, 1]);
  });

  it('claim without the first choice if it was aborted before', async () => {
    answer = () => ({ state: 'claimed' });
    const later = claims.take(second, EPOCHS[0]!);
    first.stop('abort');
    await claims.end(first, ABORTED);
    await later;
    await claims.end(second, ABORTED);
    expect([claimed.map((claim) => claim.generation), released]).toEqual([[second.uid], [second.uid]]);
  });

  it('do not wait for the first choice once they are stopped', async () => {
    const later = claims.take(second, EPOCHS[0]!);
    second.stop('abort');
    expect([await later, claimed]).toEqual([undefined, []]);
  });
});
