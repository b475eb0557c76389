import { BroomwagonError } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { PartialClaim, PartialClaimReply, PartialOwnerStore, PartialStore } from '@broomwagon/state';
import { beforeEach, expect, it } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';
import { GenerationClaims } from './generation-claims';
import { PartialSaves } from './partial-saves';

const EPOCHS = ['e1', 'e2'].map((workerEpoch) => ({ workerId: 'w', workerEpoch }));

let claimed: PartialClaim[];
let released: string[];
/** Answers a claim, after it was made. */
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
  const store = { save: () => Promise.resolve() } as unknown as PartialStore;
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
  await claims.end(generation, false);
  expect(released).toEqual([generation.uid]);
});

it('releases a claim of an epoch that has ended, if the generation ends before it claims again', async () => {
  answer = () => ({ state: 'claimed' });
  await claims.take(generation, EPOCHS[0]!);
  generation.stop('abort');
  await claims.take(generation, EPOCHS[1]!);
  expect(claimed).toHaveLength(1);
  await claims.end(generation, false);
  expect(released).toEqual([generation.uid]);
});

it('releases nothing that another generation has', async () => {
  answer = () => ({ state: 'other' });
  expect(await claims.take(generation, EPOCHS[0]!)).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  await claims.end(generation, false);
  expect(released).toEqual([]);
});

it('claims a request without clients as one that another replica may take over, under each epoch', async () => {
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
