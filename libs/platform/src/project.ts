import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Folder of the nearest package.json above this file: the repository for the sources and for `dist`. */
export const PROJECT_ROOT = rootAbove(__dirname);
export const VERSION = (JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string })
  .version;

const COMMIT_FILE = join(PROJECT_ROOT, 'dist', 'commit');
/** Commit of the last `npm run build`, with `-dirty` for uncommitted changes; `unknown` without git. */
export const COMMIT = existsSync(COMMIT_FILE) ? readFileSync(COMMIT_FILE, 'utf8') : 'unknown';

function rootAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootAbove(dirname(folder));
}
