import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Table from 'cli-table3';
import type { ReportTable } from './html-report';

/** Writes files into a folder, which is created if it does not exist. Returns their paths. */
async function writeOutput(folder: string, files: Readonly<Record<string, string>>): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  return Promise.all(
    Object.entries(files).map(async ([name, text]) => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    }),
  );
}

export function screenTable({ head, rows }: ReportTable): string {
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  table.push(...rows.map((row) => [...row]));
  return table.toString();
}

export const WRITTEN_TO = 'Written:';

/** Writes the files of a command, and prints their names. */
export async function drawn(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  return (await writeOutput(folder, files)).join(', ');
}
