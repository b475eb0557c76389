import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { withFolderLock } from './folder-lock';
import { sumBytes, FREED, ifPresent, list, readPayloadFile, replaceFile } from './payload-file';

const COUNTER = '.used';

/**
 * Bytes of the payloads of a job, without freed ones: the number in the file `.used` of its folder, or the sum over its
 * files.
 */
export async function readUsedBytes(jobFolder: string): Promise<number> {
  return (await readCounter(jobFolder)) ?? (await sumShardBytes(jobFolder));
}

/** Runs work that changes payloads of a job or their count, one at a time. Writes the count first if it is missing. */
export function withUsedBytes<T>(jobFolder: string, work: () => Promise<T>): Promise<T> {
  return withFolderLock(jobFolder, async () => {
    if ((await readCounter(jobFolder)) === undefined) await writeUsedBytes(jobFolder, await sumShardBytes(jobFolder));
    return work();
  });
}

/** Writes the count. Call it only within {@link withUsedBytes}. */
export function writeUsedBytes(jobFolder: string, bytes: number): Promise<void> {
  return replaceFile(join(jobFolder, COUNTER), String(bytes));
}

/** Deletes the count, so that the files are summed again. Call it only within {@link withUsedBytes}. */
export function forgetUsedBytes(jobFolder: string): Promise<void> {
  return rm(join(jobFolder, COUNTER), { force: true });
}

/** Reads the count; undefined when it is missing, or a power failure has lost its content. */
async function readCounter(jobFolder: string): Promise<number | undefined> {
  const text = (await ifPresent(readFile(join(jobFolder, COUNTER), 'utf8'))) ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

async function sumShardBytes(jobFolder: string): Promise<number> {
  let sum = 0;
  for (const shard of await list(jobFolder)) {
    const names = await list(join(jobFolder, shard));
    for (const name of names) {
      if (name.endsWith('.draft') || name.endsWith(FREED) || names.includes(name + FREED)) continue;
      const found = await readPayloadFile(join(jobFolder, shard, name));
      if (found !== undefined) sum += sumBytes(found.header);
    }
  }
  return sum;
}
