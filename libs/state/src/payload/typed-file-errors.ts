import { BroomwagonError, outages } from '@broomwagon/contracts';

/** Calls whose success shows that the folder takes files. Reads may succeed while a file system is read-only. */
const WRITES = new Set(['checkWritable', 'writeAll', 'writeChunk']);

/** A store in a folder. */
interface InFolder {
  readonly folder: string;
}

/** Codes of errors when the file system has no space, or the user of the process has used up its quota. */
const FULL = new Set(['ENOSPC', 'EDQUOT']);

/**
 * Class decorator of a store: every error of the file system that a method throws becomes a retryable error,
 * PAYLOAD_STORE_FULL (no space) or UNAVAILABLE (read-only, unmounted, forbidden, broken, too many open files, ...). A
 * failing disk is no fault of a request, so no request may fail for good because of such an error. A folder that cannot
 * be used is an outage, which ends with the next write that succeeds.
 */
export function TypedFileErrors(target: { readonly prototype: object }): void {
  const { constructor: _, ...methods } = Object.getOwnPropertyDescriptors(target.prototype) as Record<
    string,
    TypedPropertyDescriptor<unknown>
  >;
  for (const [name, descriptor] of Object.entries(methods)) {
    const { value: method } = descriptor;
    if (typeof method !== 'function') continue;
    const value = function (this: InFolder, ...args: unknown[]): unknown {
      const result: unknown = Reflect.apply(method, this, args);
      if (!(result instanceof Promise)) return result;
      const dependency = `the payload folder ${this.folder}`;
      const noted = WRITES.has(name) ? result.then((done) => (outages.end(dependency), done)) : result;
      return noted.catch((error: unknown) => throwTyped(error, dependency));
    };
    Object.defineProperty(target.prototype, name, { ...descriptor, value });
  }
}

function throwTyped(error: unknown, dependency: string): never {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || syscall === undefined) throw error;
  const isFull = FULL.has(code);
  if (!isFull) outages.begin({ name: dependency }, message);
  const advice = isFull ? 'free space on its disk' : 'mount it, and check its permissions and its disk';
  throw new BroomwagonError(
    isFull ? 'PAYLOAD_STORE_FULL' : 'UNAVAILABLE',
    `The payload folder cannot be used (${message}): ${advice}`,
    { cause: error, details: { errno: code } },
  );
}
