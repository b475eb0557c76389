import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isBroomwagonError } from '@broomwagon/contracts';
import { afterAll, beforeEach, expect, it, vi } from 'vitest';
import { disk, ERRNOS, mendDisk } from './failing-disk.fixture';
import { FilePayloadStore } from './file-payload-store';
import { openPayloadStore } from './open-payload-store';

vi.mock('node:fs/promises', async (importOriginal) =>
  (await import('./failing-disk.fixture')).mockDisk(importOriginal),
);

const root = mkdtempSync(join(tmpdir(), 'broomwagon-disk-'));
afterAll(() => rmSync(root, { recursive: true }));
let folder: string;
let store: FilePayloadStore;
let ref: string;
beforeEach(async () => {
  mendDisk();
  folder = mkdtempSync(join(root, 'store-'));
  store = new FilePayloadStore(folder, 10_000);
  ref = await store.put(named('known'), Buffer.from('known'));
});
const of = { pool: 'pool', job: 'job' };
const named = (owner: string) => ({ ...of, owner, name: 'tokens' });
const isRetryable = (error: unknown) =>
  isBroomwagonError(error, 'UNAVAILABLE') || isBroomwagonError(error, 'PAYLOAD_STORE_FULL');

const CALLS: [string, () => Promise<unknown>][] = [
  ['put', () => store.put(named('new'), Buffer.from('new'))],
  ['put of a stored payload', () => store.put(named('known'), Buffer.from('known'))],
  [
    'putMany',
    async () => {
      const [reply] = await store.putMany([{ payload: named('new'), bytes: Buffer.from('new') }]);
      if (reply instanceof Error) throw reply;
    },
  ],
  ['putChunk', () => store.putChunk(named('chunks'), 0, 2, Buffer.from('1'))],
  ['get', () => store.get(ref)],
  ['getChunk', () => store.getChunk(ref, 0)],
  ['stat', () => store.stat(ref)],
  ['free', () => store.free([ref])],
  ['hold', () => store.hold(ref)],
  ['usage', () => store.usage(of)],
  ['countAll', () => store.countAll()],
  ['usedBy', () => store.usedBy('deployment')],
  ['adopt', () => store.adopt('deployment')],
  ['sweepOrphans', () => store.sweepOrphans(0, () => Promise.resolve(true))],
  ['checkWritable', () => store.checkWritable()],
  ['remove', () => store.remove([ref])],
  ['removeAll', () => store.removeAll(of)],
];

it('names every public call of a store in this file', () => {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(FilePayloadStore.prototype));
  const called = new Set(CALLS.map(([name]) => name.split(' ')[0]));
  const INTERNAL = new Set(['constructor', 'requireRef', 'parseOwnRefs', 'read', 'emptyTrash', 'putPage']);
  expect(own.filter((name) => !called.has(name) && !INTERNAL.has(name))).toEqual([]);
});

/** A process that could not remove its lock holds it for 10 s. */
const unlock = () => rmSync(join(folder, 'pool', 'job', '.lock'), { recursive: true, force: true });

it.each(CALLS)(
  'fails %s with a retryable error, at whichever step of the disk, and a repeat succeeds',
  async (_, call) => {
    for (const [isForGood, shift] of [
      [false, 0],
      [true, 3],
    ] as const) {
      let failures = 0;
      for (let step = 0; ; step++) {
        const errno = ERRNOS[(step + shift) % ERRNOS.length]!;
        Object.assign(disk, { failsAfter: step, errno, isForGood });
        const error = await call().then(
          () => undefined,
          (thrown: unknown) => thrown as Error,
        );
        const hasFailed = disk.failsAfter === undefined || disk.failsAfter <= 0;
        disk.failsAfter = undefined;
        unlock();
        if (error !== undefined) {
          failures += 1;
          expect(error, `step ${step}`).toSatisfy(isRetryable);
          expect(error.message).toContain(errno);
        }
        if (!hasFailed) break;
        await call();
        expect(await store.put(named('known'), Buffer.from('known'))).toBe(ref);
      }
      expect(failures).toBeGreaterThan(0);
    }
  },
);

it.each(ERRNOS)('a disk that answers %s takes and gives no payload, and has lost none', async (errno) => {
  Object.assign(disk, { failsAfter: 0, errno, isForGood: true });
  for (const [name, call] of CALLS) await expect(call(), name).rejects.toSatisfy(isRetryable);
  disk.failsAfter = undefined;
  expect((await store.get(ref)).toString()).toBe('known');
});

it.each(CALLS)('%s of a folder that is not mounted is UNAVAILABLE, and nothing is lost', async (_, call) => {
  renameSync(folder, `${folder}-away`);
  await expect(call()).rejects.toSatisfy((error: unknown) => isBroomwagonError(error, 'UNAVAILABLE'));
  renameSync(`${folder}-away`, folder);
  expect((await store.get(ref)).toString()).toBe('known');
});

it.each(CALLS)('%s makes no new folder when its folder goes away during the call', async (_, call) => {
  let isAway = true;
  for (let step = 0; isAway; step++) {
    isAway = false;
    const instead = () => {
      renameSync(folder, `${folder}-away`);
      isAway = true;
    };
    Object.assign(disk, { failsAfter: step, instead });
    await call().catch(() => undefined);
    mendDisk();
    expect(existsSync(folder), `step ${step}`).toBe(!isAway);
    if (isAway) renameSync(`${folder}-away`, folder);
    unlock();
  }
});

it('makes its folder once, when it is opened', async () => {
  const dir = join(folder, 'new');
  const opened = await openPayloadStore({ driver: 'file', url: '', dir, keyPrefix: '' });
  await opened.checkWritable();
  disk.failsAfter = 0;
  await expect(openPayloadStore({ driver: 'file', url: '', dir, keyPrefix: '' })).rejects.toSatisfy(isRetryable);
});
