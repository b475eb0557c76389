import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { sortTexts } from '@broomwagon/contracts';

/** First line of a payload file, as JSON; the chunks follow, one after the other. */
export interface PayloadHeader {
  job: string;
  owner: string;
  name: string;
  count: number;
  /** Bytes of each chunk by index; null for a chunk that has not arrived. */
  chunkBytes: (number | null)[];
  storedAtMs: number;
}

/** Suffix of the file that marks a payload as freed. */
export const FREED = '.freed';

/** Maximum length of a header: 256 chunk sizes and the ids. */
const HEADER_BYTES = 8_192;

export function sumBytes(header: PayloadHeader): number {
  return header.chunkBytes.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
}
export function countReceived(header: PayloadHeader): number {
  return header.chunkBytes.filter((bytes) => bytes !== null).length;
}

/**
 * Reads the header of a file, alone or with one chunk or all chunks, from one version of the file. Undefined when the
 * file is missing or incomplete: a power failure may keep the name of a file and lose its content.
 */
export async function readPayloadFile(
  path: string,
  index?: number | 'all',
): Promise<{ header: PayloadHeader; data: Buffer } | undefined> {
  const file = await ifPresent(open(path));
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const start = await read(file, Math.min(HEADER_BYTES, size), 0);
    const end = start.indexOf(0x0a);
    const header = parseHeader(start.toString('utf8', 0, Math.max(0, end)));
    if (header === undefined || end + 1 + sumBytes(header) > size) return undefined;
    if (index === undefined) return { header, data: Buffer.alloc(0) };
    const sizes = header.chunkBytes.map((bytes) => bytes ?? 0);
    const skipped = index === 'all' ? 0 : sizes.slice(0, index).reduce((sum, bytes) => sum + bytes, 0);
    const length = index === 'all' ? sumBytes(header) : (sizes[index] ?? 0);
    const data = await read(file, length, end + 1 + skipped);
    return data.length < length ? undefined : { header, data };
  } finally {
    await file.close();
  }
}

/** Reads `length` bytes, or fewer at the end of the file. A single read of the file system may return fewer. */
async function read(file: FileHandle, length: number, position: number): Promise<Buffer> {
  const data = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(data, done, length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return data.subarray(0, done);
}

function parseHeader(text: string): PayloadHeader | undefined {
  try {
    return JSON.parse(text) as PayloadHeader;
  } catch {
    return undefined;
  }
}

/**
 * Creates a folder and its parents below `root`. The root is never created: a root that is missing is not mounted, and
 * a new one would hide all payloads. @throws an error of the file system
 */
export async function makeFolder(root: string, folder: string): Promise<void> {
  const make = (): Promise<void> =>
    mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  await make().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || resolve(dirname(folder)) === resolve(root)) throw error;
    await makeFolder(root, dirname(folder));
    await make();
  });
}

/**
 * Writes a payload file under a draft name and renames it, so that a reader sees the old file or the new one. The
 * content is flushed to the disk before the rename, so that a power failure never leaves the name without the content.
 */
export async function writePayloadFile(path: string, header: PayloadHeader, chunks: readonly Buffer[]): Promise<void> {
  const content = Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...chunks]);
  await replaceFile(path, content, { flush: true });
}

/** Replaces a file by a rename, so that a reader sees the old file or the new one. */
export async function replaceFile(path: string, content: string | Buffer, options?: { flush: boolean }): Promise<void> {
  const draft = `${path}.${randomUUID()}.draft`;
  try {
    await writeFile(draft, content, options);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Creates an empty file; false when it exists already. */
export async function createOnce(path: string): Promise<boolean> {
  try {
    await writeFile(path, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Time of the last change of a file, milliseconds since 1970; undefined when it does not exist. */
export async function changedMs(path: string): Promise<number | undefined> {
  return (await ifPresent(stat(path)))?.mtimeMs;
}

/** Result of a call of the file system; undefined if the file or folder does not exist. @throws other errors */
export function ifPresent<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

/** Flushes the names in a folder to the disk, so that a power failure does not lose them. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Names in a folder, sorted, without names that begin with a dot; none when the folder does not exist. */
export async function list(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    // A stray file is not a folder with payloads.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  return sortTexts(names.filter((name) => !name.startsWith('.')));
}

/** One chunk to write, or a list with all chunks of the payload. */
export type Change = { index: number; count: number; chunk: Buffer } | Buffer[];

/** Whether a complete payload already contains the bytes of a change. */
export function isSame({ header, data }: { header: PayloadHeader; data: Buffer }, change: Change): boolean {
  if (Array.isArray(change)) return data.equals(Buffer.concat(change));
  const start = header.chunkBytes.slice(0, change.index).reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
  const end = start + (header.chunkBytes[change.index] ?? 0);
  return header.count === change.count && data.subarray(start, end).equals(change.chunk);
}

/** Chunks after a change; undefined for chunks that have not arrived. */
export function merge(
  held: { header: PayloadHeader; data: Buffer } | undefined,
  change: Change,
): (Buffer | undefined)[] {
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
