import type { Claim, SaveItem } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());
beforeEach(() => fixture.freshPool());

type TestWorker = Awaited<ReturnType<CoordinatorFixture['worker']>>;

/** Stores a piece of the tokens of an attempt, as the save of a worker has it. */
async function piece(claim: Claim, savedTokens: number, tokenCount: number): Promise<SaveItem> {
  const { requestId, attempt, job } = claim;
  const name = `${attempt}.${savedTokens + tokenCount}`;
  const chunk = { job, requestId, name, chunkIndex: 0, chunkCount: 1 };
  const ref = (await fixture.call('payload.put', { ...chunk, data: Buffer.from(name).toString('base64') })).ref!;
  return { requestId, attempt, savedTokens, segment: { ...fixture.buildSegment(claim, tokenCount), ref } };
}

async function saveAll({ identity }: TestWorker, saves: SaveItem[]) {
  const { workerId, workerEpoch } = identity;
  return (await fixture.call('request.save-many', { workerId, workerEpoch, saves })).results;
}

const isStored = (ref: string) =>
  fixture.call('payload.stat', { ref }).then(
    () => true,
    () => false,
  );

async function begin(count: number) {
  const { round } = await fixture.openRound({ name: 'wait', overProvision: 1 }, count);
  await fixture.call('round.submit', { ...round, groups: groups(count, 0, 1) });
  const worker = await fixture.worker('worker');
  return { round, worker, claims: await worker.claim(count) };
}

it('answers each save, when others are fenced, malformed, of another request or of a request that is unknown', async () => {
  const { worker, claims } = await begin(4);
  const [first, second, third, fourth] = claims as [Claim, Claim, Claim, Claim];
  const all = await Promise.all(claims.map((claim) => piece(claim, 0, 5)));
  const saves: SaveItem[] = [
    all[0]!,
    { ...all[1]!, attempt: '9-a', segment: { ...all[1]!.segment!, attempt: '9-a' } },
    { ...all[2]!, segment: { ...all[2]!.segment!, ref: all[0]!.segment!.ref } },
    { ...all[2]!, segment: { ...all[2]!.segment!, attempt: '9-a' } },
    { requestId: 'never/g0/0', attempt: first.attempt },
    { requestId: fourth.requestId, attempt: fourth.attempt, serverId: 's1' },
  ];
  expect(await saveAll(worker, saves)).toMatchObject([
    { action: 'continue', savedTokens: 5 },
    { error: { code: 'FENCED', field: 'attempt', retryable: false } },
    { error: { code: 'PAYLOAD_FOREIGN', field: 'saves.2.segment.ref' } },
    { error: { code: 'VALIDATION_FAILED', field: 'saves.3.segment.attempt' } },
    { error: { code: 'REQUEST_NOT_FOUND', field: 'requestId' } },
    { action: 'continue', savedTokens: 0 },
  ]);
  const states = await Promise.all(
    claims.map(async ({ requestId }) => (await fixture.call('request.get', { requestId })).state),
  );
  expect(states).toEqual(['running', 'claimed', 'claimed', 'running']);
  const nobody = { ...worker, identity: { ...worker.identity, workerId: 'nobody' } } as TestWorker;
  const unknown = { error: { code: 'WORKER_NOT_FOUND', field: 'workerId' } };
  expect(await saveAll(nobody, [all[0]!, all[1]!])).toMatchObject([unknown, unknown]);
  await worker.complete(second);
  await worker.complete(third);
});

it('gives a request of a dead worker to another with all pieces of its partial save, in order', async () => {
  const { worker, claims } = await begin(1);
  const [claim] = claims as [Claim];
  const pieces: SaveItem[] = [];
  for (let savedTokens = 0; savedTokens < 40; savedTokens += 10) {
    const save = await piece(claim, savedTokens, 10);
    pieces.push(save);
    // A repeat changes nothing.
    for (let repeat = 0; repeat < 2; repeat++) {
      expect(await saveAll(worker, [save])).toEqual([{ action: 'continue', savedTokens: savedTokens + 10 }]);
    }
  }
  // A save that does not continue the partial save is not taken.
  const late = await piece(claim, 50, 5);
  expect(await saveAll(worker, [late])).toEqual([{ action: 'continue', savedTokens: 40 }]);
  expect(await fixture.call('request.get', { requestId: claim.requestId })).toMatchObject({ tokenCount: 40 });
  const other = await fixture.worker('lives');
  const waiting = other.claim(1, 20_000);
  await fixture.workers.deregister(fixture.pool, worker.identity);
  const [again] = (await waiting) as [Claim];
  expect(again.segments).toEqual(pieces.map(({ segment }) => segment));
  await expect.poll(() => isStored(late.segment!.ref)).toBe(false);
  for (const { segment } of pieces) expect(await isStored(segment!.ref)).toBe(true);
  await other.complete(again);
});

it('removes the pieces of a request that ends with all its tokens', async () => {
  const { worker, claims } = await begin(1);
  const [claim] = claims as [Claim];
  const pieces = [await piece(claim, 0, 10), await piece(claim, 10, 10), await piece(claim, 20, 10)];
  for (const save of pieces) await saveAll(worker, [save]);
  await worker.complete(claim, 31);
  for (const { segment } of pieces) await expect.poll(() => isStored(segment!.ref)).toBe(false);
  const fields = await fixture.redis.hgetall(`${fixture.rootKey}:request:${claim.requestId}`);
  expect(Object.keys(fields).filter((name) => name.startsWith('saved'))).toEqual([]);
  expect(JSON.parse(fields['segments']!)).toHaveLength(1);
});

it('begins again with a save of all tokens, which frees the pieces before', async () => {
  const { worker, claims } = await begin(1);
  const [claim] = claims as [Claim];
  const pieces = [await piece(claim, 0, 10), await piece(claim, 10, 10)];
  for (const save of pieces) await saveAll(worker, [save]);
  const whole = await piece(claim, 0, 25);
  expect(await saveAll(worker, [whole])).toEqual([{ action: 'continue', savedTokens: 25 }]);
  for (const { segment } of pieces) await expect.poll(() => isStored(segment!.ref)).toBe(false);
  expect(await isStored(whole.segment!.ref)).toBe(true);
});

it('does not count pieces that a coordinator of the version before has replaced, or has left over', async () => {
  const { worker, claims } = await begin(1);
  const [claim] = claims as [Claim];
  const hash = `${fixture.rootKey}:request:${claim.requestId}`;
  const readTokenCount = async () => (await fixture.call('request.get', { requestId: claim.requestId })).tokenCount;
  for (const savedTokens of [0, 10]) await saveAll(worker, [await piece(claim, savedTokens, 10)]);
  const whole = await piece(claim, 0, 30);
  await fixture.redis.hset(hash, { savedSegment: JSON.stringify(whole.segment), savedTokens: 30 });
  expect(await readTokenCount()).toBe(30);
  const next = await piece(claim, 30, 7);
  expect(await saveAll(worker, [next])).toEqual([{ action: 'continue', savedTokens: 37 }]);
  const other = await fixture.worker('lives');
  const waiting = other.claim(1, 20_000);
  await fixture.workers.deregister(fixture.pool, worker.identity);
  const [again] = (await waiting) as [Claim];
  expect(again.segments).toEqual([whole.segment, next.segment]);
  // Pieces of an attempt that the version before has ended.
  await fixture.redis.hset(hash, { savedPieces: `${claim.attempt} 10 20 1`, 'savedPiece:1': 'left over' });
  const fresh = await piece(again, 0, 10);
  expect(await saveAll(other, [fresh])).toEqual([{ action: 'continue', savedTokens: 10 }]);
  expect(await readTokenCount()).toBe(37 + 10);
  expect(await fixture.redis.hexists(hash, 'savedPiece:1')).toBe(0);
  await other.complete(again, 11);
});

it('asks for all tokens again once a partial save has very many pieces', async () => {
  const { worker, claims } = await begin(1);
  const [claim] = claims as [Claim];
  const first = await piece(claim, 0, 10);
  await saveAll(worker, [first]);
  const hash = `${fixture.rootKey}:request:${claim.requestId}`;
  const names = Array.from({ length: 1_000 }, (_, index) => `savedPiece:${index + 1}`);
  await fixture.redis.hset(hash, Object.fromEntries(names.map((name) => [name, JSON.stringify(first.segment)])));
  await fixture.redis.hset(hash, 'savedPieces', `${claim.attempt} 10 10010 1000`);
  expect(await saveAll(worker, [await piece(claim, 10_010, 1)])).toEqual([{ action: 'continue', savedTokens: 0 }]);
  expect(await saveAll(worker, [await piece(claim, 0, 10_011)])).toEqual([{ action: 'continue', savedTokens: 10_011 }]);
  expect((await fixture.redis.hkeys(hash)).filter((name) => name.startsWith('savedPiece'))).toEqual([]);
});
