import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder with the nearest package.json above this file, in the sources and in `dist`. */
export const PROJECT_ROOT = rootAbove(__dirname);
/** Version of this release. */
export const VERSION = (JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string })
  .version;

const COMMIT_FILE = join(PROJECT_ROOT, 'dist', 'commit');
/** The commit that `npm run build` found, with `-dirty` for other changes; `unknown` without git. */
export const COMMIT = existsSync(COMMIT_FILE) ? readFileSync(COMMIT_FILE, 'utf8') : 'unknown';

function rootAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootAbove(dirname(folder));
}
