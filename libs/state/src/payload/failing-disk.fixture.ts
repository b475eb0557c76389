import type * as FileSystem from 'node:fs/promises';

/** Faults of the file system in a spec that installs them with `vi.mock('node:fs/promises', ...mockDisk)`. */
export const disk = {
  /** Number of calls that succeed before one fails; undefined when none fails. */
  failsAfter: undefined as number | undefined,
  /** Only calls whose path contains this text fail. */
  path: '',
  errno: 'EIO',
  /** Called once, instead of a failure. */
  instead: undefined as (() => void) | undefined,
  /** True when all later calls fail too. */
  isForGood: true,
};

export const ERRNOS = ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EACCES', 'ESTALE', 'EMFILE', 'ENOTDIR'];

/** Ends the fault. */
export function mendDisk(): void {
  Object.assign(disk, { failsAfter: undefined, path: '', instead: undefined, isForGood: true });
}

type Call = (...args: unknown[]) => Promise<unknown>;

export async function mockDisk(importOriginal: () => Promise<unknown>): Promise<typeof FileSystem> {
  const original = (await importOriginal()) as typeof FileSystem;
  const names = Object.entries(original).filter(([, value]) => typeof value === 'function');
  const failing = names.map(([name, call]) => [name, failingCall(name, call as Call)] as const);
  return { ...original, ...Object.fromEntries(failing) };
}

/** @param ofPath path of the file of a method */
function failingCall(name: string, call: Call, ofPath?: string): Call {
  return async (...args) => {
    const path = ofPath ?? String(args[0]);
    if (disk.failsAfter !== undefined && path.includes(disk.path)) {
      if (disk.failsAfter <= 0 && disk.instead !== undefined) {
        disk.instead();
        mendDisk();
      } else if (disk.failsAfter <= 0) {
        if (!disk.isForGood) disk.failsAfter = undefined;
        throw Object.assign(new Error(`${disk.errno}: a failing disk, ${name}`), { code: disk.errno, syscall: name });
      } else {
        disk.failsAfter -= 1;
      }
    }
    const result = await call(...args);
    if (name !== 'open') return result;
    const file = result as FileSystem.FileHandle;
    for (const method of ['read', 'stat', 'sync'] as const) {
      const value = failingCall(method, file[method].bind(file) as Call, path);
      Object.defineProperty(file, method, { value });
    }
    return file;
  };
}
