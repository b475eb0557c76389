import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, resolve } from 'node:path';
import type { TestSystem } from '../system/test-system';

const FOLDER = resolve('clients/python');

/** Runs pytest against a system. Throws with its output if a test fails. */
export async function pytest(
  python: string,
  system: TestSystem,
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<string> {
  return runPython(python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...args], system, environment);
}

/** Runs Python in the folder of the package. @throws Error with the output if it fails */
export async function runPython(
  python: string,
  args: readonly string[],
  system?: TestSystem,
  environment: Record<string, string> = {},
): Promise<string> {
  const child = spawn(python, args, {
    cwd: FOLDER,
    env: {
      ...process.env,
      PYTHONPATH: [resolve(FOLDER, 'src'), process.env.PYTHONPATH].filter(Boolean).join(delimiter),
      PYTHONDONTWRITEBYTECODE: '1',
      NO_COLOR: '1',
      FORCE_COLOR: '',
      ...(system && { NATS_URL: system.natsUrl, POOL: system.pool }),
      ...environment,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${output}`);
  return output;
}
