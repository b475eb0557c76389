import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { list } from './payload-file';
import type { PayloadName } from './payload-ref';
import type { PayloadJob } from './payload-store';

/** Names that every file system takes as a folder name and that this store does not use otherwise (`..`, `.used`). */
const FOLDER_NAME = /^[A-Za-z0-9][A-Za-z0-9._:%-]{0,199}$/;

/**
 * Name of the folder of a job: the name of the job, or `_` and a hash if no folder can have that name. The files name
 * the job.
 */
function toFolderName(job: string): string {
  return FOLDER_NAME.test(job) ? job : `_${createHash('sha256').update(job).digest('hex')}`;
}

/** Folder of a job in the folder of the store. */
export function toJobFolder(folder: string, { pool, job }: PayloadJob): string {
  return join(folder, pool, toFolderName(job));
}

/** File of a payload, `<folder>/<pool>/<job>/<2 hex>/<62 hex>`. */
export function toPayloadPath(folder: string, payload: PayloadName): string {
  const hash = createHash('sha256').update(`${payload.owner}~${payload.name}`).digest('hex');
  return join(toJobFolder(folder, payload), hash.slice(0, 2), hash.slice(2));
}

/** Lists all payload files in the folder of the store, by folder. */
export async function* listShards(folder: string): AsyncGenerator<{ pool: string; paths: string[] }> {
  for (const pool of await list(folder)) {
    for (const jobFolder of await list(join(folder, pool))) {
      for (const shard of await list(join(folder, pool, jobFolder))) {
        const files = await list(join(folder, pool, jobFolder, shard));
        yield { pool, paths: files.map((file) => join(folder, pool, jobFolder, shard, file)) };
      }
    }
  }
}
