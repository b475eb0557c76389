import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { CheckOutcome } from './check';

/** Runs the checker as a separate process, which reads only the two files. */
export function runChecker(
  promptsFile: string,
  resultsFile: string,
  { samples, first }: { samples: number; first: number },
): Promise<CheckOutcome> {
  const program = join(__dirname, '..', 'check-results.js');
  const args = [program, promptsFile, resultsFile, '--json', '--samples', String(samples), '--first', String(first)];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      const code = error?.code;
      if (error !== null && code !== 1 && code !== undefined) reject(new Error(`The checker failed: ${stderr.trim()}`));
      else if (stdout.trim() === '') reject(new Error(`The checker printed nothing: ${stderr.trim()}`));
      else resolve(JSON.parse(stdout) as CheckOutcome);
    });
  });
}
