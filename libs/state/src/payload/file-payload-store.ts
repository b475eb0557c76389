import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BroomwagonError, LIMITS } from '@broomwagon/contracts';
import { chunksOf, pagesOf } from './chunks';
import { withFolderLock } from './folder-lock';
import {
  bytesOf,
  readCounter,
  readPayloadFile,
  receivedOf,
  writePayloadFile,
  type PayloadHeader,
} from './payload-file';
import { formatPayloadRef, parsePayloadRef, type PayloadName } from './payload-ref';
import {
  PayloadStore,
  type PayloadChunk,
  type PayloadJob,
  type PayloadOwnership,
  type PayloadStat,
  type PayloadSweep,
  type PayloadUsage,
} from './payload-store';

/** Ends the name of the file that says that a payload is freed. */
const FREED = '.freed';

/** Chunks of one write; a list is the whole payload. */
type Change = { index: number; count: number; chunk: Buffer } | Buffer[];

/**
 * Payloads as files: `<folder>/<pool>/<job>/<2 hex>/<62 hex>`, named by a hash so that no id ever becomes a path. For one
 * machine or a shared file system. Writes of one job take turns by a lock in its folder; reads never wait.
 */
export class FilePayloadStore extends PayloadStore {
  protected readonly driver = 'file';

  /** @param quotaBytes of each job */
  constructor(
    private readonly folder: string,
    private readonly quotaBytes: number,
  ) {
    super();
  }

  async put(payload: PayloadName, bytes: Buffer): Promise<string> {
    const ref = formatPayloadRef('file', payload);
    await this.write(payload, chunksOf(bytes));
    return ref;
  }

  protected async writeChunk(payload: PayloadName, index: number, count: number, chunk: Buffer): Promise<number> {
    return receivedOf(await this.write(payload, { index, count, chunk }));
  }

  async get(ref: string): Promise<Buffer> {
    return (await this.read(ref, 'all')).data;
  }

  async getChunk(ref: string, index: number): Promise<PayloadChunk> {
    const { header, data } = await this.read(ref, index);
    if (index >= header.count) throw new BroomwagonError('PAYLOAD_NOT_FOUND', `No chunk ${index} of payload ${ref}`);
    return { ...statOf(header), data, chunkIndex: index };
  }

  async stat(ref: string): Promise<PayloadStat> {
    return statOf((await this.read(ref)).header);
  }

  async nowMs(): Promise<number> {
    return Date.now();
  }

  protected setFreed(page: readonly [string, PayloadName][], isFreed: boolean): Promise<number[]> {
    return Promise.all(page.map(([, payload]) => this.mark(payload, isFreed)));
  }

  protected async removePage(page: readonly PayloadName[], cutoffMs?: number): Promise<number> {
    const removed = await Promise.all(
      page.map((payload) => this.unlink(this.folderOf(payload), this.pathOf(payload), cutoffMs)),
    );
    return removed.filter(Boolean).length;
  }

  async sweepOrphans(
    olderThanMs: number,
    isOwned: PayloadOwnership,
    pageSize: number = LIMITS.page,
  ): Promise<PayloadSweep> {
    const sweep: PayloadSweep = { examined: 0, removed: 0 };
    const cutoffMs = Date.now() - olderThanMs;
    for (const pool of await list(this.folder)) {
      for (const job of await list(join(this.folder, pool))) {
        const of = { pool, job };
        for (const shard of await list(this.folderOf(of))) {
          const paths = (await list(join(this.folderOf(of), shard))).map((file) =>
            join(this.folderOf(of), shard, file),
          );
          for (const page of pagesOf(paths, pageSize)) {
            await Promise.all(page.map((path) => this.sweepFile(of, path, cutoffMs, isOwned, sweep)));
          }
        }
      }
    }
    return sweep;
  }

  async removeAll(of: PayloadJob): Promise<void> {
    await rm(this.folderOf(of), { recursive: true, force: true });
  }

  async usage(of: PayloadJob): Promise<PayloadUsage> {
    return { usedBytes: await readCounter(join(this.folderOf(of), '.used')), quotaBytes: this.quotaBytes };
  }

  async close(): Promise<void> {}

  private async read(ref: string, index?: number | 'all') {
    const found = await readPayloadFile(this.pathOf(parsePayloadRef('file', ref)), index);
    if (found === undefined) throw new BroomwagonError('PAYLOAD_NOT_FOUND', `No payload ${ref}`);
    const received = receivedOf(found.header);
    if (received < found.header.count) {
      throw new BroomwagonError(
        'PAYLOAD_INCOMPLETE',
        `Only ${received} of ${found.header.count} chunks of ${ref} are here`,
      );
    }
    return found;
  }

  private async write(payload: PayloadName, change: Change): Promise<PayloadHeader> {
    const jobFolder = this.folderOf(payload);
    await mkdir(jobFolder, { recursive: true });
    return withFolderLock(jobFolder, async () => {
      const path = this.pathOf(payload);
      const held = await readPayloadFile(path, 'all');
      if (held !== undefined && receivedOf(held.header) === held.header.count) {
        if (!isSame(held, change))
          throw new BroomwagonError('PAYLOAD_EXISTS', 'Another payload is stored under this name');
        // It was freed, and is wanted again.
        if (await this.unmark(path)) await this.count(jobFolder, bytesOf(held.header), false);
        return held.header;
      }
      const chunks = merge(held, change);
      const header: PayloadHeader = {
        owner: payload.owner,
        name: payload.name,
        count: chunks.length,
        chunkBytes: chunks.map((chunk) => chunk?.length ?? null),
        storedAtMs: Date.now(),
      };
      const added = bytesOf(header) - (held === undefined ? 0 : bytesOf(held.header));
      // Counted before it is written: a crash in between counts too much, never too little.
      await this.count(jobFolder, added);
      const present = chunks.filter((chunk) => chunk !== undefined);
      await writePayloadFile(path, header, present).catch(async (cause: unknown) => {
        await this.count(jobFolder, -added);
        throw new BroomwagonError('UNAVAILABLE', `Cannot write a payload: ${(cause as Error).message}`, { cause });
      });
      return header;
    });
  }

  private async count(jobFolder: string, addedBytes: number, isBounded = true): Promise<void> {
    const path = join(jobFolder, '.used');
    const used = (await readCounter(path)) + addedBytes;
    if (isBounded && addedBytes > 0 && used > this.quotaBytes) {
      const wish = `${used} of ${this.quotaBytes} bytes`;
      throw new BroomwagonError('PAYLOAD_STORE_FULL', `The payloads of the job would take ${wish}`);
    }
    await writeFile(path, String(used));
  }

  /** Removes a file, if it is still as old as `cutoffMs` says, and counts it down. */
  private async unlink(jobFolder: string, path: string, cutoffMs = Infinity): Promise<boolean> {
    if ((await readPayloadFile(path)) === undefined) return false;
    return withFolderLock(jobFolder, async () => {
      const held = await readPayloadFile(path);
      if (held === undefined || (await stat(path)).mtimeMs > cutoffMs) return false;
      await rm(path);
      if (!(await this.unmark(path))) await this.count(jobFolder, -bytesOf(held.header));
      return true;
    });
  }

  /** A file beside it says that a payload is freed. */
  private async mark(payload: PayloadName, isFreed: boolean): Promise<number> {
    const path = this.pathOf(payload);
    if ((await readPayloadFile(path)) === undefined) return -1;
    return withFolderLock(this.folderOf(payload), async () => {
      const held = await readPayloadFile(path);
      if (held === undefined) return -1;
      const bytes = bytesOf(held.header);
      const changed = isFreed ? await createOnce(path + FREED) : await this.unmark(path);
      if (changed) await this.count(this.folderOf(payload), isFreed ? -bytes : bytes, false);
      return bytes;
    });
  }

  private unmark(path: string): Promise<boolean> {
    return rm(path + FREED).then(
      () => true,
      () => false,
    );
  }

  private async sweepFile(
    of: { pool: string; job: string },
    path: string,
    cutoffMs: number,
    isOwned: PayloadOwnership,
    sweep: PayloadSweep,
  ): Promise<void> {
    const facts = await stat(path).catch(() => undefined);
    if (facts === undefined || facts.mtimeMs > cutoffMs) return;
    if (path.endsWith('.draft')) return rm(path, { force: true });
    if (path.endsWith(FREED)) return;
    const held = await readPayloadFile(path);
    if (held === undefined) return;
    sweep.examined++;
    const payload = { ...of, owner: held.header.owner, name: held.header.name };
    if (await isOwned(payload, formatPayloadRef('file', payload))) {
      // The time of change is the time of the last look, so that the next passes leave it alone.
      await utimes(path, new Date(), new Date()).catch(() => undefined);
    } else if (await this.unlink(this.folderOf(of), path, cutoffMs)) sweep.removed++;
  }

  private folderOf({ pool, job }: { pool: string; job: string }): string {
    return join(this.folder, pool, job);
  }

  private pathOf(payload: PayloadName): string {
    const hash = createHash('sha256').update(`${payload.owner}~${payload.name}`).digest('hex');
    return join(this.folderOf(payload), hash.slice(0, 2), hash.slice(2));
  }
}

function statOf(header: PayloadHeader): PayloadStat {
  return { bytes: bytesOf(header), chunkCount: header.count, storedAtMs: header.storedAtMs };
}

function isSame({ header, data }: { header: PayloadHeader; data: Buffer }, change: Change): boolean {
  if (Array.isArray(change)) return data.equals(Buffer.concat(change));
  const start = header.chunkBytes.slice(0, change.index).reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
  const end = start + (header.chunkBytes[change.index] ?? 0);
  return header.count === change.count && data.subarray(start, end).equals(change.chunk);
}

/** False when it was there. */
async function createOnce(path: string): Promise<boolean> {
  try {
    await writeFile(path, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** The chunks after a change; undefined for those that have not arrived. */
function merge(held: { header: PayloadHeader; data: Buffer } | undefined, change: Change): (Buffer | undefined)[] {
  if (Array.isArray(change)) return change;
  const chunks: (Buffer | undefined)[] = Array.from({ length: change.count }, () => undefined);
  if (held?.header.count === change.count) {
    let start = 0;
    for (const [index, bytes] of held.header.chunkBytes.entries()) {
      if (bytes === null) continue;
      chunks[index] = held.data.subarray(start, start + bytes);
      start += bytes;
    }
  }
  chunks[change.index] = change.chunk;
  return chunks;
}

async function list(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  return names.filter((name) => !name.startsWith('.')).sort();
}
