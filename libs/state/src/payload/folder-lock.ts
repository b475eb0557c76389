import { mkdir, rm, stat, utimes } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';

/** Age at which a lock belongs to a dead process, milliseconds: a live process renews its lock during long work. */
const STALE_AFTER_MS = 10_000;
const GIVE_UP_AFTER_MS = 15_000;

/**
 * Runs work that no other process may do in this folder at the same time. The lock is a folder `.lock` in the folder,
 * because `mkdir` is atomic on every file system.
 * @throws BroomwagonError UNAVAILABLE when the lock is held for more than 15 s
 */
export async function withFolderLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const lock = `${folder}/.lock`;
  const deadline = Date.now() + GIVE_UP_AFTER_MS;
  for (let pauseMs = 1; !(await acquire(lock)); pauseMs = Math.min(50, pauseMs * 2)) {
    if (Date.now() > deadline) throw new BroomwagonError('UNAVAILABLE', `The payload folder ${folder} is still locked`);
    await delay(pauseMs * (0.5 + Math.random()));
  }
  const renewal = setInterval(() => void utimes(lock, new Date(), new Date()).catch(() => undefined), 2_000);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await rm(lock, { recursive: true, force: true });
  }
}

async function acquire(lock: string): Promise<boolean> {
  try {
    await mkdir(lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const held = await stat(lock).catch(() => undefined);
  if (held !== undefined && Date.now() - held.mtimeMs > STALE_AFTER_MS) {
    await rm(lock, { recursive: true, force: true });
  }
  return false;
}
