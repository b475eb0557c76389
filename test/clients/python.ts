import { execFile, type PromiseWithChild } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

/** The Python of `npm run test:clients`, which has the packages of the clients; without it their tests are skipped. */
export const python = process.env.CLIENTS_PYTHON;

/** Runs a script of this folder. */
export function startScript(
  script: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): PromiseWithChild<{ stdout: string }> {
  const env = { ...process.env, ...environment };
  return promisify(execFile)(python!, [resolve('test/clients', script), ...args], { env });
}

/** Parses the last line of a script's output, which is JSON. */
export const printedBy = ({ stdout }: { stdout: string }) => JSON.parse(stdout.trim().split('\n').at(-1)!);
