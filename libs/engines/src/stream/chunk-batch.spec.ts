import { describe, expect, it } from 'vitest';
import { ChunkBatch } from './chunk-batch';

function batchOf(failsAt?: string) {
  const reads: string[] = [];
  const failures: unknown[] = [];
  const read = (bytes: Buffer): void => {
    reads.push(bytes.toString());
    if (failsAt !== undefined && bytes.includes(failsAt)) throw new Error(failsAt);
  };
  return { reads, failures, batch: new ChunkBatch(read, (error) => failures.push((error as Error).message)) };
}

describe('a batch of chunks', () => {
  it('is read together, in order, although no further chunk comes', async () => {
    const { batch, reads } = batchOf();
    batch.add(Buffer.from('a'), true);
    batch.add(Buffer.from('b'), false);
    batch.add(Buffer.from('c'), false);
    expect(reads).toEqual(['a']);
    await expect.poll(() => reads).toEqual(['a', 'bc']);
  });

  it('is read at once with an urgent chunk, when it is long, and at the end', () => {
    const { batch, reads } = batchOf();
    batch.add(Buffer.from('a'), false);
    batch.add(Buffer.from('b'), true);
    batch.add(Buffer.alloc(65_536, 'c'), false);
    batch.add(Buffer.from('d'), false);
    batch.flush();
    batch.flush();
    expect(reads).toEqual(['ab', 'c'.repeat(65_536), 'd']);
  });

  it('reports an error of what waited, and reads nothing after it', async () => {
    const { batch, reads, failures } = batchOf('wrong');
    batch.add(Buffer.from('wrong'), false);
    await expect.poll(() => failures).toEqual(['wrong']);
    batch.add(Buffer.from('more'), true);
    expect(reads).toEqual(['wrong']);
    const { batch: other } = batchOf('wrong');
    expect(() => other.add(Buffer.from('wrong'), true)).toThrow('wrong');
  });
});
