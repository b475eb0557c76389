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

/** Chunks that change in one write; a list replaces the whole payload. */
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

  async remove(refs: readonly string[]): Promise<number> {
    let removed = 0;
    for (const ref of refs) {
      const payload = parsePayloadRef('file', ref);
      if (await this.unlink(this.folderOf(payload), this.pathOf(payload))) removed++;
    }
    return removed;
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
      const held = await readPayloadFile(path, Array.isArray(change) ? undefined : 'all');
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

  private async count(jobFolder: string, addedBytes: number): Promise<void> {
    const path = join(jobFolder, '.used');
    const used = (await readCounter(path)) + addedBytes;
    if (addedBytes > 0 && used > this.quotaBytes) {
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
      await this.count(jobFolder, -bytesOf(held.header));
      return true;
    });
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
    const held = await readPayloadFile(path);
    if (held === undefined) return;
    sweep.examined++;
    if (await isOwned({ ...of, owner: held.header.owner })) {
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
