import { mkdir, rename, rm, stat, statfs, utimes } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { BroomwagonError } from '@broomwagon/contracts';
import { splitPages } from '../library/lists';
import {
  sumBytes,
  changedMs,
  createOnce,
  FREED,
  ifPresent,
  isSame,
  list,
  makeFolder,
  merge,
  readPayloadFile,
  countReceived,
  replaceFile,
  syncFolder,
  writePayloadFile,
  type Change,
  type PayloadHeader,
} from './payload-file';
import { listShards, toJobFolder, toPayloadPath } from './payload-folders';
import type { PayloadName } from './payload-ref';
import {
  PayloadStore,
  SWEPT_KEPT_MS,
  type FoundPayload,
  type LookAtPage,
  type PayloadJob,
  type PayloadUsage,
} from './payload-store';
import { TypedFileErrors } from './typed-file-errors';
import { forgetUsedBytes, readUsedBytes, withUsedBytes, writeUsedBytes } from './used-bytes';

/** Folder of swept payloads, `<day>/<path in the store>`. */
const TRASH = '.trash';
/** Folder with an empty file for each deployment that uses the store. */
const DEPLOYMENTS = '.deployments';
/** File that is written repeatedly to check that the folder takes files. */
const PROBE = '.writable';
const PROBE_BYTES = 4_096;
const DAY_MS = 86_400_000;
type Away = (path: string) => Promise<void>;

/**
 * Payloads as files: `<folder>/<pool>/<job>/<2 hex>/<62 hex>`, named by a hash so that no id ever becomes a path. The
 * folder is on one machine or a shared file system. Writes of one job take turns by a lock in its folder; reads never
 * wait. A payload is on the disk when its reference is returned. An incomplete file counts as missing, and is removed
 * like a complete file.
 *
 * The folder itself is created once, by {@link open}. A folder that is missing later is not mounted, so nothing is
 * written to its place, and no payload counts as lost.
 */
@TypedFileErrors
export class FilePayloadStore extends PayloadStore {
  protected readonly driver = 'file';

  /** @param quotaBytes quota of each job */
  constructor(
    private readonly folder: string,
    private readonly quotaBytes: number,
  ) {
    super();
  }

  /** Creates the folder unless it exists. @throws BroomwagonError UNAVAILABLE */
  static async open(folder: string, quotaBytes: number): Promise<FilePayloadStore> {
    const store = new FilePayloadStore(folder, quotaBytes);
    await store.makeRoot();
    return store;
  }

  protected async writeAll(payload: PayloadName, chunks: Buffer[]): Promise<void> {
    await this.write(payload, chunks);
  }

  protected async writeChunk(payload: PayloadName, index: number, count: number, chunk: Buffer): Promise<number> {
    return countReceived(await this.write(payload, { index, count, chunk }));
  }

  protected async find(payload: PayloadName, index?: number): Promise<FoundPayload | undefined> {
    const found = await readPayloadFile(toPayloadPath(this.folder, payload), index);
    if (found === undefined) return this.requireFolder();
    const { header, data } = found;
    return {
      bytes: sumBytes(header),
      chunkCount: header.count,
      storedAtMs: header.storedAtMs,
      receivedChunks: countReceived(header),
      chunk: index !== undefined && index < header.count ? data : undefined,
    };
  }

  async nowMs(): Promise<number> {
    return Date.now();
  }

  async checkWritable(): Promise<void> {
    await this.requireFolder();
    await replaceFile(join(this.folder, PROBE), Buffer.alloc(PROBE_BYTES));
  }

  protected async setFreed(page: readonly [string, PayloadName][], isFreed: boolean): Promise<number[]> {
    await this.requireFolder();
    return Promise.all(page.map(([, payload]) => this.mark(payload, isFreed)));
  }

  protected async removePage(page: readonly PayloadName[], cutoffMs?: number, keptMs?: number): Promise<number> {
    await this.requireFolder();
    const away: Away = keptMs === undefined ? rm : (path) => this.toTrash(path);
    const removed = await Promise.all(
      page.map((payload) =>
        this.unlink(toJobFolder(this.folder, payload), toPayloadPath(this.folder, payload), cutoffMs, away),
      ),
    );
    return removed.filter(Boolean).length;
  }

  protected async eachOld(cutoffMs: number, pageSize: number, look: LookAtPage): Promise<void> {
    await this.requireFolder();
    for await (const { pool, paths } of listShards(this.folder)) {
      for (const page of splitPages(paths, pageSize)) {
        const found = await Promise.all(page.map((path) => this.oldPayload(pool, path, cutoffMs)));
        const old = found.filter((one) => one !== undefined);
        if (old.length > 0 && (await look(old)) === 'stop') return;
      }
    }
  }

  /** Sets the change times of files to now: the payloads were just found to have owners. */
  protected async touch(page: readonly PayloadName[]): Promise<void> {
    const now = new Date();
    await Promise.all(page.map((payload) => ifPresent(utimes(toPayloadPath(this.folder, payload), now, now))));
  }

  protected override async emptyTrash(nowMs: number): Promise<void> {
    const trash = join(this.folder, TRASH);
    for (const day of await list(trash)) {
      const endMs = Date.parse(day) + DAY_MS;
      if (endMs + SWEPT_KEPT_MS <= nowMs) await rm(join(trash, day), { recursive: true, force: true });
    }
  }

  async countAll(): Promise<number> {
    await this.requireFolder();
    let count = 0;
    for await (const { paths } of listShards(this.folder)) {
      count += paths.filter((path) => !path.endsWith('.draft') && !path.endsWith(FREED)).length;
    }
    return count;
  }

  async usedBy(deployment: string): Promise<string[]> {
    await this.requireFolder();
    const folder = join(this.folder, DEPLOYMENTS);
    await makeFolder(this.folder, folder);
    await createOnce(join(folder, deployment));
    return (await list(folder)).filter((one) => one !== deployment);
  }

  async adopt(deployment: string): Promise<void> {
    for (const other of await this.usedBy(deployment)) await rm(join(this.folder, DEPLOYMENTS, other), { force: true });
  }

  async removeAll(of: PayloadJob): Promise<void> {
    await this.requireFolder();
    await rm(toJobFolder(this.folder, of), { recursive: true, force: true });
  }

  async usage(of: PayloadJob): Promise<PayloadUsage> {
    await this.requireFolder();
    const usedBytes = await readUsedBytes(toJobFolder(this.folder, of));
    const { bavail, bsize } = await statfs(this.folder);
    return { usedBytes, quotaBytes: Math.min(this.quotaBytes, usedBytes + bavail * bsize) };
  }

  async close(): Promise<void> {}

  private async makeRoot(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
  }

  /** Checks the folder: while it is missing, no payload counts as lost. @throws an error of the file system */
  private async requireFolder(): Promise<undefined> {
    if (!(await stat(this.folder)).isDirectory()) throw notAFolder(this.folder);
    return undefined;
  }

  private async write(payload: PayloadName, change: Change): Promise<PayloadHeader> {
    await this.requireFolder();
    const jobFolder = toJobFolder(this.folder, payload);
    await makeFolder(this.folder, jobFolder);
    return withUsedBytes(jobFolder, async () => {
      const path = toPayloadPath(this.folder, payload);
      const held = await readPayloadFile(path, 'all');
      if (held !== undefined && countReceived(held.header) === held.header.count) {
        if (!isSame(held, change)) throw new BroomwagonError('PAYLOAD_EXISTS', 'Another payload has this name');
        // If the payload was freed, something refers to it again.
        if (await this.unmark(path)) await this.count(jobFolder, sumBytes(held.header), false);
        return held.header;
      }
      if (held === undefined && (await changedMs(path)) !== undefined) await this.discard(jobFolder, path, rm);
      const chunks = merge(held, change);
      const header: PayloadHeader = {
        job: payload.job,
        owner: payload.owner,
        name: payload.name,
        count: chunks.length,
        chunkBytes: chunks.map((chunk) => chunk?.length ?? null),
        storedAtMs: Date.now(),
      };
      const added = sumBytes(header) - (held === undefined ? 0 : sumBytes(held.header));
      // The bytes are counted before they are written: a crash in between counts too much, never too little.
      await this.count(jobFolder, added);
      const present = chunks.filter((chunk) => chunk !== undefined);
      const written = makeFolder(this.folder, dirname(path)).then(() => writePayloadFile(path, header, present));
      await written.catch(async (cause: unknown) => {
        // If this fails too, the count is too high until the files are summed again.
        await this.count(jobFolder, -added).catch(() => undefined);
        throw cause;
      });
      await syncFolder(dirname(path));
      return header;
    });
  }

  private async count(jobFolder: string, addedBytes: number, isBounded = true): Promise<void> {
    const used = (await readUsedBytes(jobFolder)) + addedBytes;
    if (isBounded && addedBytes > 0 && used > this.quotaBytes) {
      const request = `${used} of ${this.quotaBytes} bytes`;
      throw new BroomwagonError('PAYLOAD_STORE_FULL', `The payloads of the job would take ${request}`);
    }
    await writeUsedBytes(jobFolder, Math.max(0, used));
  }

  /** Removes a file, complete or not, if it was not changed after `cutoffMs`, and subtracts its bytes. */
  private async unlink(jobFolder: string, path: string, cutoffMs = Infinity, away: Away = rm): Promise<boolean> {
    if ((await changedMs(path)) === undefined) return false;
    return withUsedBytes(jobFolder, async () => {
      const atMs = await changedMs(path);
      if (atMs === undefined || atMs > cutoffMs) return false;
      await this.discard(jobFolder, path, away);
      return true;
    });
  }

  private async discard(jobFolder: string, path: string, away: Away): Promise<void> {
    const held = await readPayloadFile(path);
    await away(path);
    const wasFreed = await this.unmark(path);
    // The header of an incomplete file has no valid size.
    if (held === undefined) await forgetUsedBytes(jobFolder);
    else if (!wasFreed) await this.count(jobFolder, -sumBytes(held.header));
  }

  /** Marks a payload as freed with a file beside it, or removes the mark. @returns its bytes; -1 if it is missing */
  private async mark(payload: PayloadName, isFreed: boolean): Promise<number> {
    const path = toPayloadPath(this.folder, payload);
    if ((await readPayloadFile(path)) === undefined) return -1;
    return withUsedBytes(toJobFolder(this.folder, payload), async () => {
      const held = await readPayloadFile(path);
      if (held === undefined) return -1;
      const bytes = sumBytes(held.header);
      const changed = isFreed ? await createOnce(path + FREED) : await this.unmark(path);
      if (changed) await this.count(toJobFolder(this.folder, payload), isFreed ? -bytes : bytes, false);
      return bytes;
    });
  }

  private async unmark(path: string): Promise<boolean> {
    return (await ifPresent(rm(path + FREED).then(() => true))) ?? false;
  }

  /** Payload of a file that was not changed after `cutoffMs`. Removes the file if it is a draft or incomplete. */
  private async oldPayload(pool: string, path: string, cutoffMs: number): Promise<PayloadName | undefined> {
    const atMs = await changedMs(path);
    if (atMs === undefined || atMs > cutoffMs) return undefined;
    if (path.endsWith('.draft')) await rm(path, { force: true });
    if (path.endsWith('.draft') || path.endsWith(FREED)) return undefined;
    const held = await readPayloadFile(path);
    if (held === undefined) await this.unlink(dirname(dirname(path)), path, cutoffMs, (broken) => this.toTrash(broken));
    return held && { pool, job: held.header.job, owner: held.header.owner, name: held.header.name };
  }

  /** Moves a file to the trash. An operator restores it by moving it to the same path without trash and day. */
  private async toTrash(path: string): Promise<void> {
    const day = new Date().toISOString().slice(0, 10);
    const place = join(this.folder, TRASH, day, relative(this.folder, path));
    await makeFolder(this.folder, dirname(place));
    await rename(path, place);
  }
}

function notAFolder(path: string): Error {
  return Object.assign(new Error(`ENOTDIR: ${path} is no folder`), { code: 'ENOTDIR', syscall: 'stat' });
}
