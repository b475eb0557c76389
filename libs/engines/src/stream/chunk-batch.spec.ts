import { describe, expect, it } from 'vitest';
import { ChunkBatch } from './chunk-batch';

function createBatch(failsAt?: string) {
  const reads: string[] = [];
  const failures: unknown[] = [];
  const read = (bytes: Buffer): void => {
    reads.push(bytes.toString());
    if (failsAt !== undefined && bytes.includes(failsAt)) throw new Error(failsAt);
  };
  const more: string[] = [];
  const resume = (): void => {
    for (const chunk of more.splice(0)) batch.add(Buffer.from(chunk), 'long');
  };
  const batch = new ChunkBatch(read, (error) => failures.push((error as Error).message), resume);
  return { reads, failures, batch, more };
}

describe('a batch of chunks', () => {
  it('is read together, in order, although no further chunk comes', async () => {
    const { batch, reads } = createBatch();
    batch.add(Buffer.from('a'), 'urgent');
    batch.add(Buffer.from('b'), 'usual');
    batch.add(Buffer.from('c'), 'usual');
    expect(reads).toEqual(['a']);
    await expect.poll(() => reads).toEqual(['a', 'bc']);
  });

  it('is read at once with an urgent chunk, when it is long, and at the end', () => {
    const { batch, reads } = createBatch();
    batch.add(Buffer.from('a'), 'usual');
    batch.add(Buffer.from('b'), 'urgent');
    batch.add(Buffer.alloc(65_536, 'c'), 'usual');
    batch.add(Buffer.from('d'), 'usual');
    batch.flush();
    batch.flush();
    expect(reads).toEqual(['ab', 'c'.repeat(65_536), 'd']);
  });

  it('needs no chunk of a long response before it is read, and then all that came meanwhile', async () => {
    const { batch, reads, more } = createBatch();
    expect(batch.add(Buffer.from('a'), 'usual')).toBe(true);
    expect(batch.add(Buffer.from('b'), 'long')).toBe(false);
    more.push('c', 'd');
    await expect.poll(() => reads).toEqual(['abcd']);
    expect(batch.add(Buffer.alloc(65_536, 'e'), 'long')).toBe(true);
    expect(reads).toHaveLength(2);
  });

  it('reports an error of waiting chunks, and reads nothing after it', async () => {
    const { batch, reads, failures } = createBatch('wrong');
    batch.add(Buffer.from('wrong'), 'usual');
    await expect.poll(() => failures).toEqual(['wrong']);
    expect(() => batch.add(Buffer.from('more'), 'urgent')).toThrow('wrong');
    // The stream has ended in the turn in which the error was found.
    expect(() => batch.flush()).toThrow('wrong');
    expect(reads).toEqual(['wrong']);
    const { batch: other } = createBatch('wrong');
    expect(() => other.add(Buffer.from('wrong'), 'urgent')).toThrow('wrong');
  });
});
