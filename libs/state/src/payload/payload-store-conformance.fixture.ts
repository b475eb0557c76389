import { randomBytes } from 'node:crypto';
import { isBroomwagonError, type ErrorCode } from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { PayloadStore } from './payload-store';

const KB = 1_024;
const CHUNK = 256 * KB;
export const CONFORMANCE_QUOTA_BYTES = 1_024 * KB;

/** Tests for every driver. `open` returns a store with a quota of 1 MiB per job; all opened stores share payloads. */
export function describePayloadStore(driver: string, open: () => Promise<PayloadStore>): void {
  describe(`payload store: ${driver}`, () => {
    let store: PayloadStore;
    let other: PayloadStore;
    let jobs = 0;
    const newJob = () => `job-${++jobs}`;
    const named = (job: string, owner: string, name = 'prompt', pool = 'pool') => ({ pool, job, owner, name });
    const code = (expected: ErrorCode) => expect.toSatisfy((error: unknown) => isBroomwagonError(error, expected));

    beforeAll(async () => {
      store = await open();
      other = await open();
    });
    afterAll(async () => {
      await store.close();
      await other.close();
    });

    it.each([0, 1, 1_000, CHUNK, CHUNK + 1, 3 * CHUNK])('gives %i bytes back as they were', async (size) => {
      const bytes = randomBytes(size);
      const ref = await store.put(named(newJob(), 'g1'), bytes);
      expect((await other.get(ref)).equals(bytes)).toBe(true);
      const chunkCount = Math.max(1, Math.ceil(size / CHUNK));
      expect(await other.stat(ref)).toMatchObject({ bytes: size, chunkCount });
      const last = await other.getChunk(ref, chunkCount - 1);
      expect(last.data.equals(bytes.subarray((chunkCount - 1) * CHUNK))).toBe(true);
    });

    it('names driver, pool, job, owner and name in a reference that is safe in a URL, for the longest ids too', async () => {
      const [pool, job] = ['p'.repeat(64), 'j'.repeat(128)];
      const ref = await store.put(
        named(job, `${job}/${'g'.repeat(128)}/1023`, 'n'.repeat(128), pool),
        Buffer.from('x'),
      );
      expect(ref).toMatch(/^[A-Za-z0-9._:~-]{1,512}$/);
      expect(ref.startsWith(`${driver}~${pool}~${job}~`)).toBe(true);
      expect((await store.get(ref)).toString()).toBe('x');
    });

    it('keeps payloads apart by pool, job, owner and name', async () => {
      const [a, b] = [newJob(), newJob()];
      const refs = await Promise.all([
        store.put(named(a, 'g/1', '2'), Buffer.from('1')),
        store.put(named(a, 'g', '1:2'), Buffer.from('2')),
        store.put(named(a, 'g', '2'), Buffer.from('3')),
        store.put(named(b, 'g/1', '2'), Buffer.from('4')),
        store.put(named(a, 'g/1', '2', 'other'), Buffer.from('5')),
      ]);
      const texts = await Promise.all(refs.map(async (ref) => (await store.get(ref)).toString()));
      expect(texts).toEqual(['1', '2', '3', '4', '5']);
      expect(await store.remove([refs[0]!])).toBe(1);
      expect((await store.get(refs[4]!)).toString()).toBe('5');
    });

    it('removes an empty payload, alone and with all of its job', async () => {
      const job = newJob();
      const ref = await store.put(named(job, 'g'), Buffer.alloc(0));
      expect((await store.get(ref)).length).toBe(0);
      expect(await store.remove([ref])).toBe(1);
      const again = await store.put(named(job, 'g'), Buffer.alloc(0));
      await store.removeAll({ pool: 'pool', job });
      await expect(store.get(again)).rejects.toMatchObject({ code: 'PAYLOAD_NOT_FOUND' });
    });

    it('never changes a payload that is complete, and takes the same one again', async () => {
      const job = newJob();
      for (const size of [100, 600]) {
        const [payload, bytes] = [named(job, `g${size}`), randomBytes(size * KB)];
        const ref = await store.put(payload, bytes);
        expect(await other.put(payload, bytes)).toBe(ref);
        const chunk = bytes.subarray(0, CHUNK);
        const count = Math.ceil((size * KB) / CHUNK);
        expect(await store.putChunk(payload, 0, count, chunk)).toEqual({ ref, receivedChunks: count });
        const changes = [
          () => store.put(payload, Buffer.from('other')),
          () => store.put(payload, randomBytes(size * KB)),
          () => store.putChunk(payload, 0, count + 1, chunk),
          () => store.putChunk(payload, 0, count, randomBytes(chunk.length)),
        ];
        for (const change of changes) await expect(change()).rejects.toEqual(code('PAYLOAD_EXISTS'));
        expect((await other.get(ref)).equals(bytes)).toBe(true);
      }
      // A payload counts once, also after repeated and refused puts.
      await store.put(named(job, 'g3'), randomBytes(300 * KB));
      await expect(store.put(named(job, 'g4'), randomBytes(100 * KB))).rejects.toEqual(code('PAYLOAD_STORE_FULL'));
    }, 20_000);

    it('stores many payloads of any sizes and jobs together, with an error of its own for each that is refused', async () => {
      const [a, b] = [newJob(), newJob()];
      await store.put(named(a, 'taken'), Buffer.from('1'));
      const sizes = [1, 0, 300 * KB, 200 * KB, 100 * KB, 7];
      const small = sizes.map((size, index) => ({ payload: named(a, `g${index}`), bytes: randomBytes(size) }));
      const others = [
        { payload: named(a, 'taken'), bytes: Buffer.from('2') },
        { payload: named(b, 'g0'), bytes: Buffer.from('b') },
        { payload: named(a, 'large'), bytes: randomBytes(1_100 * KB) },
        { payload: named(a, 'last'), bytes: Buffer.from('last') },
      ];
      const all = [...small, ...others];
      for (let repeat = 0; repeat < 2; repeat++) {
        const results = await store.putMany(all);
        expect(results).toHaveLength(all.length);
        for (const [index, result] of results.entries()) {
          const { payload, bytes } = all[index]!;
          if (payload.owner === 'taken') expect(result).toEqual(code('PAYLOAD_EXISTS'));
          else if (payload.owner === 'large') expect(result).toEqual(code('PAYLOAD_STORE_FULL'));
          else expect((await other.get(result as string)).equals(bytes)).toBe(true);
        }
        // Each payload counts once.
        const usedBytes = 1 + 4 + sizes.reduce((sum, size) => sum + size, 0);
        expect(await other.usage({ pool: 'pool', job: a })).toMatchObject({ usedBytes });
      }
      expect(await store.putMany([])).toEqual([]);
    });

    it('writes at most 16 pages at once, and stores payloads of more pages all the same', async () => {
      const pages = vi.spyOn(store as unknown as { putPage(page: unknown): Promise<unknown> }, 'putPage');
      const { putPage } = Object.getPrototypeOf(store) as { putPage(page: unknown): Promise<unknown> };
      let [underWay, most] = [0, 0];
      pages.mockImplementation(async (page) => {
        most = Math.max(most, ++underWay);
        return putPage.call(store, page).finally(() => (underWay -= 1));
      });
      const payloads = Array.from({ length: 60 }, () => ({ payload: named(newJob(), 'g'), bytes: Buffer.from('x') }));
      const refs = await store.putMany(payloads);
      pages.mockRestore();
      expect(await store.remove(refs as string[])).toBe(60);
      expect(most).toBe(16);
    });

    it('refuses a payload over the quota of the job, keeps nothing of it, and takes it after a removal', async () => {
      const job = newJob();
      const big = await store.put(named(job, 'g2'), randomBytes(500 * KB));
      await expect(store.put(named(job, 'g1'), randomBytes(700 * KB))).rejects.toEqual(code('PAYLOAD_STORE_FULL'));
      await expect(store.stat(big.replace('g2', 'g1'))).rejects.toEqual(code('PAYLOAD_NOT_FOUND'));
      await store.put(named(job, 'g3'), randomBytes(500 * KB));
      await store.put(named(newJob(), 'g1'), randomBytes(CHUNK));
      expect(await store.remove([big, big])).toBe(1);
      await expect(store.get(big)).rejects.toEqual(code('PAYLOAD_NOT_FOUND'));
      await store.put(named(job, 'g1'), randomBytes(CHUNK));
    });

    it('does not count a freed payload to the quota, and returns it until its removal', async () => {
      const job = newJob();
      const bytes = randomBytes(600 * KB);
      const ref = await store.put(named(job, 'g1'), bytes);
      const unknown = [ref.replace('g1', 'g9'), 'no reference', `tape~p~j~o~n`];
      const sizes = [bytes.length, undefined, undefined, undefined];
      expect(await store.free([ref, ...unknown])).toEqual(sizes);
      expect(await other.free([ref, ...unknown])).toEqual(sizes);
      const second = await store.put(named(job, 'g2'), randomBytes(600 * KB));
      expect((await other.get(ref)).equals(bytes)).toBe(true);
      // A freed payload that is held or stored again counts once.
      await store.free([second]);
      await store.hold(ref);
      await other.hold(ref);
      await store.put(named(job, 'g1'), bytes);
      await expect(store.put(named(job, 'g3'), randomBytes(500 * KB))).rejects.toEqual(code('PAYLOAD_STORE_FULL'));
      await store.free([ref]);
      expect(await store.remove([...unknown, ref, second])).toBe(2);
      await expect(store.hold(ref)).rejects.toEqual(code('PAYLOAD_NOT_FOUND'));
      await store.put(named(job, 'g3'), randomBytes(1_000 * KB));
    }, 20_000);

    it('does not remove a payload that was stored after the cutoff', async () => {
      const job = newJob();
      const ref = await store.put(named(job, 'g1'), Buffer.from('x'));
      expect(await store.remove([ref], (await store.nowMs()) - 60_000)).toBe(0);
      expect(await store.remove([ref], await store.nowMs())).toBe(1);
    });

    it('never exceeds the quota when many write at once', async () => {
      const job = newJob();
      const puts = Array.from({ length: 24 }, (_, index) =>
        (index % 2 ? store : other).put(named(job, `g${index}`), randomBytes(100 * KB)),
      );
      const settled = await Promise.allSettled(puts);
      expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    });

    it('takes chunks in any order and twice, and has the payload when the last one is stored', async () => {
      const job = newJob();
      const [a, b, c] = ['aa', 'bbb', 'c'].map((text) => Buffer.from(text));
      const put = (index: number, bytes: Buffer) => store.putChunk(named(job, 'g1'), index, 3, bytes);
      expect(await put(2, c!)).toEqual({ receivedChunks: 1 });
      expect(await put(2, c!)).toEqual({ receivedChunks: 1 });
      expect(await put(0, a!)).toEqual({ receivedChunks: 2 });
      const known = await store.put(named(job, 'g0'), Buffer.from('x'));
      const ref = known.replace('g0', 'g1');
      await expect(store.get(ref)).rejects.toEqual(code('PAYLOAD_INCOMPLETE'));
      await expect(store.stat(ref)).rejects.toEqual(code('PAYLOAD_INCOMPLETE'));
      expect(await put(1, b!)).toEqual({ ref, receivedChunks: 3 });
      expect(await put(1, b!)).toEqual({ ref, receivedChunks: 3 });
      expect((await store.get(ref)).toString()).toBe('aabbbc');
      expect((await store.getChunk(ref, 1)).data.toString()).toBe('bbb');
    });

    it('takes an upload that starts again before it was complete', async () => {
      const job = newJob();
      const put = (index: number, count: number, text: string) =>
        store.putChunk(named(job, 'g1'), index, count, Buffer.from(text));
      await put(0, 2, 'old');
      await put(2, 3, 'old');
      await put(2, 3, 'z');
      await put(0, 3, 'x');
      const { ref } = await put(1, 3, 'y');
      expect((await store.get(ref!)).toString()).toBe('xyz');
    });

    it('keeps jobs apart whatever their names are, also names with a meaning in a file system', async () => {
      const jobs = ['..', '.', '.used', '_', 'j'.repeat(500), `${'j'.repeat(499)}k`, '%2E%2E'];
      const refs = await Promise.all(jobs.map((job) => store.put(named(job, 'g'), Buffer.from(job))));
      for (const [index, ref] of refs.entries()) expect((await store.get(ref)).toString()).toBe(jobs[index]);
      expect(await store.sweepOrphans(0, async ({ job }) => !jobs.includes(job))).toMatchObject({
        removed: jobs.length,
      });
    });

    it('answers unknown, malformed and foreign references with a typed error', async () => {
      const ref = await store.put(named(newJob(), 'g1'), Buffer.from('x'));
      await expect(store.get(ref.replace('g1', 'g9'))).rejects.toEqual(code('PAYLOAD_NOT_FOUND'));
      await expect(store.getChunk(ref, 1)).rejects.toEqual(code('PAYLOAD_NOT_FOUND'));
      for (const bad of [
        '',
        driver,
        `${driver}~p~j~a b~n`,
        `${driver}~p~{j}~o~n`,
        `${driver}~..~j~o~n`,
        `${driver}~p~j~o~a/b`,
        `tape~p~j~o~n`,
      ]) {
        await expect(store.get(bad), bad).rejects.toEqual(code('VALIDATION_FAILED'));
      }
      for (const [pool, job] of [
        ['p', '{j}'],
        ['..', 'j'],
        ['..', 'j'],
        ['p', 'a/b'],
      ] as const) {
        await expect(store.put(named(job, 'g1', 'n', pool), Buffer.from('x'))).rejects.toEqual(
          code('VALIDATION_FAILED'),
        );
      }
      await expect(store.put(named('a b', 'g1'), Buffer.from('x'))).rejects.toEqual(code('VALIDATION_FAILED'));
      await expect(store.put(named('j', 'a//b', 'n'), Buffer.from('x'))).rejects.toEqual(code('VALIDATION_FAILED'));
    });

    it('refuses a reference of another pool, job or owner than expected', async () => {
      const ref = await store.put(named('j', 'j/g/0', '1'), Buffer.from('x'));
      expect(store.requireRef(ref, { pool: 'pool', job: 'j', owner: 'j/g/0' })).toEqual(named('j', 'j/g/0', '1'));
      for (const other of [{ pool: 'other' }, { job: 'k' }, { pool: 'pool', owner: 'j/g/1' }]) {
        expect(() => store.requireRef(ref, other)).toThrow(code('PAYLOAD_FOREIGN'));
      }
      expect(() => store.requireRef('tape~pool~j~o~n', { pool: 'pool' })).toThrow(code('VALIDATION_FAILED'));
    });

    it('refuses chunks over their limit', async () => {
      const put = store.putChunk(named('j', 'g', 'n'), 0, 1, Buffer.alloc(CHUNK + 1));
      await expect(put).rejects.toEqual(code('PAYLOAD_TOO_LARGE'));
      await expect(store.putChunk(named('j', 'g', 'n'), 2, 2, Buffer.alloc(1))).rejects.toEqual(
        code('VALIDATION_FAILED'),
      );
    });

    it('sweeps payloads without an owner, page by page, and no others', async () => {
      const job = newJob();
      const refs: string[] = [];
      for (let index = 0; index < 10; index++) refs.push(await store.put(named(job, `g${index}`), Buffer.from('x')));
      await store.putChunk(named(job, 'partial'), 0, 2, Buffer.from('x'));
      const asked: string[] = [];
      const isOwned = async ({ job: ofJob, owner }: { job: string; owner: string }) => {
        if (ofJob === job) asked.push(owner);
        return ofJob !== job || ['g3', 'g7'].includes(owner);
      };
      expect((await store.sweepOrphans(3_600_000, isOwned, { pageSize: 3 })).examined).toBe(0);
      const sweep = await store.sweepOrphans(0, isOwned, { pageSize: 3 });
      expect(sweep.removed).toBe(9);
      expect(asked.filter((owner) => owner.startsWith('g')).length).toBeGreaterThanOrEqual(10);
      const left = await store.free(refs);
      expect(left.flatMap((bytes, index) => (bytes === undefined ? [] : [index]))).toEqual([3, 7]);
      // Swept payloads no longer count to the quota.
      await store.put(named(job, 'g1'), randomBytes(1_000 * KB));
    });

    it('sweeps nothing when more than a tenth of 1,000 payloads or more would go at once', async () => {
      const names = Array.from({ length: 1_000 }, (_, index) => named(`bulk-${index % 40}`, `g${index}`));
      // The payloads of a job are stored one after the other, because the writers of a folder wait for each other.
      const putAll = async (first: number) => {
        for (let index = first; index < names.length; index += 40) await store.put(names[index]!, Buffer.from('x'));
      };
      await Promise.all(Array.from({ length: 40 }, (_, first) => putAll(first)));
      const most = Math.floor((await store.countAll()) / 10);
      const lost = new Set(names.slice(0, most + 1).map(({ owner }) => owner));
      const isOwned = async ({ job, owner }: { job: string; owner: string }) =>
        !job.startsWith('bulk-') || !lost.has(owner);
      const before = await store.countAll();
      expect(await store.sweepOrphans(0, isOwned)).toMatchObject({ removed: 0, isRefused: true });
      expect(await store.countAll()).toBe(before);
      const all = { pageSize: 7, isUnbounded: true };
      expect(await store.sweepOrphans(0, isOwned, all)).toMatchObject({ removed: most + 1, isRefused: false });
      // The store now has fewer payloads than the minimum for the bound.
      for (const { owner } of names) lost.add(owner);
      expect(await other.sweepOrphans(0, isOwned)).toMatchObject({ removed: names.length - most - 1 });
    }, 60_000);

    it('knows the deployments that use it', async () => {
      expect(await store.usedBy('a')).toEqual([]);
      expect(await other.usedBy('b')).toEqual(['a']);
      expect(await store.usedBy('a')).toEqual(['b']);
      await other.adopt('b');
      expect(await store.usedBy('b')).toEqual([]);
    });
  });
}
