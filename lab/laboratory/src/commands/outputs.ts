import { writeOutput } from '../output/write-output';

export const WRITTEN_TO = 'Written:';

/** Writes the files of a command, and prints their names. */
export async function drawn(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  return (await writeOutput(folder, files)).join(', ');
}
