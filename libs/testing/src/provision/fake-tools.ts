import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/**
 * For tests: puts shell scripts named as programs before all other folders on the PATH of this process.
 *
 * @returns a function that removes them again.
 */
export async function fakeTools(folder: string, scripts: Readonly<Record<string, string>>): Promise<() => void> {
  await mkdir(folder, { recursive: true });
  for (const [name, body] of Object.entries(scripts)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${body}\n`);
    await chmod(join(folder, name), 0o755);
  }
  const before = process.env['PATH'] ?? '';
  process.env['PATH'] = `${folder}${delimiter}${before}`;
  return () => {
    process.env['PATH'] = before;
  };
}
