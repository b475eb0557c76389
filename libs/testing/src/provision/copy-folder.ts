import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { checkBinary, type ServerBinary } from './server-binary';
import { PROGRAMS, type ProgramKind } from './server-kind';

/** The file that makes a folder a complete copy; paths are relative to the folder. */
const MANIFEST = 'copy.json';
interface Manifest {
  executable: string;
  libraryFolders: string[];
  packages: string[];
}

/** A preparation folder older than this belongs to a run that was killed. */
const ABANDONED_AFTER_MS = 60 * 60_000;

/** A program in a folder of the cache, or the reason why there is none. */
export type CopyResult = ServerBinary | { reason: string };

/** A program that was unpacked into the folder `copy`, and the place of its complete copy. */
export interface UnpackedCopy {
  kind: ProgramKind;
  copy: string;
  /** Names of the folders that may hold the executable. */
  executableFolders: RegExp;
  packages: string[];
  destination: string;
  version: string;
}

/** How the copies of a source are made. */
export interface CopySource<Kind extends ProgramKind> {
  /** Unpacks programs in a work folder, which is removed afterwards. */
  make(missing: readonly Kind[], work: string): Promise<Map<Kind, CopyResult>>;
  /** The only version of a program that is used. Default: the newest one of the folder. */
  getVersion?(kind: Kind): string;
}

/**
 * Gives the copies that `folder` has, and makes the missing ones. Parallel first runs each prepare a folder of their
 * own; the first to rename it into place wins.
 */
export async function fillFolder<Kind extends ProgramKind>(
  folder: string,
  kinds: readonly Kind[],
  { make, getVersion }: CopySource<Kind>,
): Promise<Map<Kind, CopyResult>> {
  const results = new Map<Kind, CopyResult>();
  for (const kind of kinds) {
    const known = await findKnownCopy(kind, join(folder, kind), getVersion?.(kind));
    if (known !== undefined) results.set(kind, known);
  }
  const missing = kinds.filter((kind) => !results.has(kind));
  if (missing.length === 0) return results;
  try {
    await mkdir(folder, { recursive: true });
    await removeAbandoned(folder);
    const work = await mkdtemp(join(folder, '.preparing-'));
    try {
      for (const [kind, copy] of await make(missing, work)) results.set(kind, copy);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  } catch (error) {
    const reason = `the cache folder cannot be used: ${(error as Error).message}`;
    for (const kind of missing) if (!results.has(kind)) results.set(kind, { reason });
  }
  return results;
}

/** Checks an unpacked program and moves it to its place, unless another run was first. */
export async function completeCopy(unpacked: UnpackedCopy): Promise<CopyResult> {
  const { kind, copy, packages, destination } = unpacked;
  const manifest = await describe(unpacked);
  if (manifest === undefined) {
    return { reason: `${packages.join(', ')} hold no ${PROGRAMS[kind].binaries.join(' or ')}` };
  }
  const checked = await checkBinary(kind, join(copy, manifest.executable), libraryPath(copy, manifest));
  if ('reason' in checked) return checked;
  await writeFile(join(copy, MANIFEST), JSON.stringify(manifest, null, 2));
  await mkdir(destination, { recursive: true });
  const version = unpacked.version.replace(/[^\w.+~-]/g, '_');
  const final = join(destination, version);
  try {
    await rename(copy, final);
  } catch {
    // Another run was first and its copy is as good, or the folder there is damaged.
    const theirs = await findKnownCopy(kind, destination, version);
    if (theirs !== undefined) return theirs;
    await rm(final, { recursive: true, force: true });
    await rename(copy, final);
  }
  return (await findKnownCopy(kind, destination, version)) ?? { reason: `${final} cannot be used` };
}

/** Path of the executable in an unpacked program. */
export async function findExecutable({ kind, copy, executableFolders }: UnpackedCopy): Promise<string | undefined> {
  const paths = await readdir(copy, { recursive: true });
  return PROGRAMS[kind].binaries.flatMap((name) =>
    paths.filter((path) => basename(path) === name && executableFolders.test(basename(dirname(path)))),
  )[0];
}

async function findKnownCopy(kind: ProgramKind, folder: string, only?: string): Promise<ServerBinary | undefined> {
  const versions = only === undefined ? await readdir(folder).catch(() => []) : [only];
  for (const version of versions.toSorted((a, b) => b.localeCompare(a, 'en', { numeric: true }))) {
    const copy = join(folder, version);
    try {
      const manifest = JSON.parse(await readFile(join(copy, MANIFEST), 'utf8')) as Manifest;
      const checked = await checkBinary(kind, join(copy, manifest.executable), libraryPath(copy, manifest));
      if ('version' in checked) return checked;
    } catch {
      // A copy that is not complete, or damaged, does not count.
    }
  }
  return undefined;
}

async function describe(unpacked: UnpackedCopy): Promise<Manifest | undefined> {
  const executable = await findExecutable(unpacked);
  if (executable === undefined) return undefined;
  const paths = await readdir(unpacked.copy, { recursive: true });
  const libraries = paths.filter((path) => /\.so(\.|$)/.test(path));
  const libraryFolders = [...new Set(libraries.map((path) => dirname(path)))];
  return { executable, libraryFolders, packages: unpacked.packages };
}

function libraryPath(copy: string, manifest: Manifest): Record<string, string> {
  if (manifest.libraryFolders.length === 0) return {};
  const ours = manifest.libraryFolders.map((folder) => join(copy, folder));
  const theirs = process.env['LD_LIBRARY_PATH'];
  return { LD_LIBRARY_PATH: [...ours, ...(theirs ? [theirs] : [])].join(':') };
}

async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith('.preparing-')) continue;
    const path = join(folder, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > ABANDONED_AFTER_MS) await rm(path, { recursive: true, force: true });
  }
}
