import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { TestSystem } from '../system/test-system';

const FOLDER = resolve('clients/python');

/** A system whose worker runs samples of the job `served` only; others are for the workers of the tests. */
export async function startPythonSystem(): Promise<TestSystem> {
  const system = await TestSystem.start({ workers: 0 });
  await system.startApp('worker', 'worker-1', { JOB: 'served' });
  return system;
}

/** The blocks of Python in a document. */
export function pythonBlocks(document: string): string[] {
  return [...readFileSync(document, 'utf8').matchAll(/```python\n([^`]*)```/g)].map(([, block]) => block!);
}

/** Runs pytest against a system. @returns its output @throws Error with the output if a test fails */
export async function pytest(
  python: string,
  system: TestSystem,
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<string> {
  return runPython(python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...args], system, environment);
}

/** Folder and environment of a process of Python that uses the package and a system. */
export function pythonEnvironment(system?: TestSystem, environment: Record<string, string> = {}) {
  const env = {
    ...process.env,
    PYTHONPATH: [resolve(FOLDER, 'src'), process.env.PYTHONPATH].filter(Boolean).join(delimiter),
    PYTHONDONTWRITEBYTECODE: '1',
    NO_COLOR: '1',
    FORCE_COLOR: '',
    ...(system && { NATS_URL: system.natsUrl, POOL: system.pool }),
    ...environment,
  };
  return { cwd: FOLDER, env };
}

/**
 * Runs Python in the folder of the package. @returns its output
 * @param stopAfterMs sends SIGTERM then @throws Error with the output if it fails
 */
export async function runPython(
  python: string,
  args: readonly string[],
  system?: TestSystem,
  environment: Record<string, string> = {},
  stopAfterMs?: number,
): Promise<string> {
  const child = spawn(python, args, pythonEnvironment(system, environment));
  const timer = stopAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGTERM'), stopAfterMs);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${output}`);
  return output;
}
