import { access } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** The docker-compose.yml of this folder or the nearest one above it. */
export async function findComposeFile(from: string = process.cwd()): Promise<string | undefined> {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const file = join(folder, 'docker-compose.yml');
    if (
      await access(file).then(
        () => true,
        () => false,
      )
    )
      return file;
    if (folder === dirname(folder)) return undefined;
  }
}
