import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isBroomwagonError } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { FilePayloadStore } from './file-payload-store';

const root = mkdtempSync(join(tmpdir(), 'broomwagon-files-'));
afterAll(() => rmSync(root, { recursive: true }));

const QUOTA_BYTES = 1_000;
const of = { pool: 'pool', job: 'job' };
const named = (owner: string) => ({ ...of, owner, name: 'tokens' });
const notFound = expect.toSatisfy((error: unknown) => isBroomwagonError(error, 'PAYLOAD_NOT_FOUND'));

let store: FilePayloadStore;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'store-'));
  store = new FilePayloadStore(folder, QUOTA_BYTES);
});
const used = async () => (await store.usage(of)).usedBytes;
/** All payload files of the job, with their marks. */
function files(): string[] {
  const jobFolder = join(folder, 'pool', 'job');
  if (!existsSync(jobFolder)) return [];
  return (readdirSync(jobFolder, { recursive: true }) as string[])
    .map((name) => join(jobFolder, name))
    .filter((path) => !basename(path).startsWith('.') && statSync(path).isFile());
}
/** Stores a payload of 100 bytes. */
async function put(owner: string): Promise<{ ref: string; path: string }> {
  const before = files();
  const ref = await store.put(named(owner), Buffer.alloc(100, owner));
  return { ref, path: files().find((path) => !before.includes(path))! };
}
/** Remains of a file after a power failure. */
const REMAINS: [string, (path: string) => void][] = [
  ['nothing', (path) => truncateSync(path, 0)],
  ['a part of the header', (path) => truncateSync(path, 20)],
  ['all but the last byte', (path) => truncateSync(path, statSync(path).size - 1)],
  ['zeros', (path) => writeFileSync(path, Buffer.alloc(statSync(path).size))],
];

describe.each(REMAINS)('a file of which %s is left', (_, spoil) => {
  it('counts as missing, and its payload can be stored again', async () => {
    const { ref, path } = await put('a');
    await store.free([ref]);
    spoil(path);
    await expect(store.get(ref)).rejects.toEqual(notFound);
    await expect(store.getChunk(ref, 0)).rejects.toEqual(notFound);
    await expect(store.stat(ref)).rejects.toEqual(notFound);
    await expect(store.hold(ref)).rejects.toEqual(notFound);
    await put('a');
    expect((await store.get(ref)).equals(Buffer.alloc(100, 'a'))).toBe(true);
    expect(await used()).toBe(100);
    expect(files()).toEqual([path]);
  });

  it('is removed with the others', async () => {
    const [spoilt, whole] = [await put('a'), await put('b')];
    spoil(spoilt.path);
    expect(await store.free([spoilt.ref, whole.ref])).toEqual([undefined, 100]);
    expect(await store.remove([spoilt.ref, whole.ref])).toBe(2);
    expect(files()).toEqual([]);
    expect(await used()).toBe(0);
  });

  it('does not keep a sweep from the others', async () => {
    const [spoilt, owned, orphan] = [await put('a'), await put('b'), await put('c')];
    spoil(spoilt.path);
    const past = new Date(Date.now() - 60_000);
    for (const path of files()) utimesSync(path, past, past);
    const sweep = await store.sweepOrphans(0, async ({ owner }) => owner === 'b');
    expect(sweep).toMatchObject({ examined: 2, orphans: 1, removed: 1 });
    expect(files()).toEqual([owned.path]);
    await expect(store.get(orphan.ref)).rejects.toEqual(notFound);
    expect(await used()).toBe(100);
  });
});

describe('the count of the bytes of a job', () => {
  const counter = () => join(folder, 'pool', 'job', '.used');

  it.each([
    ['is gone', () => rmSync(counter())],
    ['is empty', () => truncateSync(counter(), 0)],
    ['is invalid', () => writeFileSync(counter(), '-100')],
  ])('is created again from the files when it %s', async (_, spoil) => {
    const refs = [await put('a'), await put('b'), await put('c')].map(({ ref }) => ref);
    await store.free([refs[0]!]);
    spoil();
    expect(await used()).toBe(200);
    // Removed and newly stored payloads are counted once, whether the count was spoilt before or not.
    await store.remove([refs[1]!]);
    expect(await used()).toBe(100);
    spoil();
    await put('d');
    expect(await used()).toBe(200);
    spoil();
    await expect(store.put(named('e'), Buffer.alloc(QUOTA_BYTES - 199))).rejects.toMatchObject({
      code: 'PAYLOAD_STORE_FULL',
    });
    await store.hold(refs[0]!);
    expect(readFileSync(counter(), 'utf8')).toBe('300');
  });

  it('is never read too low while it is written', async () => {
    await put('a');
    const seen: number[] = [];
    const reads: Promise<unknown>[] = [];
    const reading = setInterval(() => reads.push(used().then((bytes) => seen.push(bytes))), 1);
    for (let turn = 0; turn < 50; turn += 1) await store.remove([(await put('b')).ref]);
    await expect.poll(() => seen.length).toBeGreaterThan(10);
    clearInterval(reading);
    await Promise.all(reads);
    expect(Math.min(...seen)).toBe(100);
  });
});
