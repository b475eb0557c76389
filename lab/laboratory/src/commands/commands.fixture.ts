import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { vi } from 'vitest';

/** Runs a command of the laboratory with these options. @returns the printed lines */
export async function printed(add: (program: Command) => void, ...options: string[]): Promise<string[]> {
  const said = vi.spyOn(console, 'log').mockReturnValue();
  try {
    await createCommand(add).parseAsync(options, { from: 'user' });
    return said.mock.calls.flatMap(([text]) => String(text).split('\n'));
  } finally {
    said.mockRestore();
  }
}

/** Cells of a printed table, without its head. */
export function parseRows(lines: readonly string[]): string[][] {
  const rows = lines.filter((line) => line.startsWith('│')).map((line) => line.slice(1, -1).split('│'));
  return rows.slice(1).map((cells) => cells.map((cell) => cell.trim()));
}

const LABORATORY = readFileSync('docs/laboratory.md', 'utf8');

/** Options of each call of a command in docs/laboratory.md. @throws CommanderError for a wrong option */
export function documentedCalls(add: (program: Command) => void): Record<string, unknown>[] {
  const name = createCommand(add).name();
  const calls = LABORATORY.matchAll(new RegExp(`npm run lab -- ${name}\\b([^\`#\\n]*)`, 'g'));
  return [...calls].map(([, options]) => {
    const command = createCommand(add);
    command.parseOptions(options!.trim().split(/\s+/).filter(Boolean));
    return command.opts();
  });
}

/** First cells of the rows of all tables of docs/laboratory.md whose head starts with this cell. */
export function documentedRows(head: string): string[] {
  const tables = LABORATORY.split('\n\n').filter((block) => block.startsWith(`| ${head} `));
  return tables.flatMap((table) => table.split('\n').slice(2)).map((line) => line.split('|')[1]!.trim());
}

function createCommand(add: (program: Command) => void): Command {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  add(program);
  return program.commands[0]!;
}
