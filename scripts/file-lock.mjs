// A lock between processes of one machine. Only Node's own modules: it runs before anything is installed.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const RETRY_MS = 100;
/** Longest wait, longer than any build: after it, the holder hangs, or its process id belongs to another program. */
const MAX_WAIT_MS = 600_000;

/**
 * Runs the work while no other process holds the lock, which is a file with the id of its holder. A lock whose holder
 * has ended is taken over. Blocks this process while it waits.
 * @throws Error after ten minutes
 */
export function withFileLock(path, work) {
  const own = `${path}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  try {
    const endsAtMs = Date.now() + MAX_WAIT_MS;
    while (!hasTaken(path, own)) {
      if (Date.now() > endsAtMs) throw new Error(`${path} is held for ten minutes by process ${readHolder(path)}`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  } finally {
    rmSync(own, { force: true });
  }
  try {
    return work();
  } finally {
    rmSync(path, { force: true });
  }
}

/** Takes the lock if it is free. A link appears with its content, and only if the path does not exist. */
function hasTaken(path, own) {
  try {
    linkSync(own, path);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const holder = readHolder(path);
  if (holder !== undefined && !isAlive(holder)) removeLockOf(holder, path, own);
  return false;
}

function readHolder(path) {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

/** Removes the lock of an ended holder. If another process has taken the lock over meanwhile, its lock is put back. */
function removeLockOf(holder, path, own) {
  const removed = `${own}.removed`;
  try {
    renameSync(path, removed);
    if (readHolder(removed) !== holder) linkSync(removed, path);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  } finally {
    rmSync(removed, { force: true });
  }
}
