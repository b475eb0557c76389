import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Claim } from '@broomwagon/contracts';
import { TokenBuffer, toSegment } from '@broomwagon/generation';
import { expect, it } from 'vitest';
import { LEASE, MemoryPayloadStore } from '../worker.fixture';
import { WorkerConfig } from '../worker.config';
import { Attempt } from './attempt';
import { SegmentSaver } from './segment-saver';

/** Holds the writes back until it is opened. */
class ClosedStore extends MemoryPayloadStore {
  underWay = 0;
  most = 0;
  open: () => void = () => undefined;
  private readonly isOpen = new Promise<void>((resolve) => (this.open = resolve));

  override async putMany(payloads: Parameters<MemoryPayloadStore['putMany']>[0]): Promise<(string | Error)[]> {
    this.most = Math.max(this.most, ++this.underWay);
    await this.isOpen;
    const refs = await super.putMany(payloads);
    this.underWay -= 1;
    return refs;
  }
}

it('writes the tokens of two batches at once when thousands of attempts end together', async () => {
  const store = new ClosedStore();
  const saver = new SegmentSaver(store, new WorkerConfig());
  const saves = Array.from({ length: 2_000 }, (_, index) => {
    const claim = { requestId: `j/g/${index}`, attempt: '1-a', job: 'j' } as Claim;
    const tokens = new TokenBuffer([], false);
    tokens.take({ text: 'a', tokenIds: [index], logprobs: [-1], tokenCount: 1 });
    const attempt = new Attempt(claim, { workerId: 'w', workerEpoch: 'e' });
    return saver.save(attempt, LEASE as never, toSegment(tokens));
  });
  while (store.underWay < 2) await nextTurn();
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  expect(store.underWay).toBe(2);
  store.open();
  const refs = (await Promise.all(saves)).map(({ ref }) => ref);
  expect(refs.map((ref) => (store.json(ref) as { tokenIds: number[] }).tokenIds[0])).toEqual([...saves.keys()]);
  expect(store.most).toBe(2);
});
