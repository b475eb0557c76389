import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { PrivateApt } from './private-apt';
import { runTool } from './run-tool';
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

/**
 * `BROOMWAGON_CACHE`, else `$XDG_CACHE_HOME/broomwagon`, else `~/.cache/broomwagon`. A relative path is one below the
 * folder that the command was called in: `npm run` changes it to the root of the project and names it in `INIT_CWD`.
 */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const { BROOMWAGON_CACHE, XDG_CACHE_HOME, INIT_CWD } = environment;
  const folder = BROOMWAGON_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'broomwagon');
  return resolve(INIT_CWD ?? '.', folder);
}

export type CopyResult = ServerBinary | { reason: string };

/**
 * Gives each server as a private copy of the distribution's packages: downloaded with apt, unpacked into
 * `<cache>/servers/<release>/<server>/<version>`, nothing installed. A copy that is there already is used without the
 * network. Parallel first runs each prepare their own folder; the first to rename it into place wins.
 */
export async function privateCopies<Kind extends ProgramKind>(
  kinds: readonly Kind[],
  say: (line: string) => void,
  cache = cacheFolder(),
): Promise<Map<Kind, CopyResult>> {
  const results = new Map<Kind, CopyResult>();
  const architecture = await runTool('dpkg', ['--print-architecture'], { timeoutMs: 10_000 });
  const aptGet = await runTool('apt-get', ['--version'], { timeoutMs: 10_000 });
  if (!architecture.ok || !aptGet.ok) {
    for (const kind of kinds) results.set(kind, { reason: 'no apt-get and dpkg here' });
    return results;
  }
  const servers = join(cache, 'servers', `${await releaseName()}-${architecture.output.trim()}`);
  for (const kind of kinds) {
    const known = await knownCopy(kind, join(servers, kind));
    if (known !== undefined) results.set(kind, known);
  }
  const missing = kinds.filter((kind) => !results.has(kind));
  if (missing.length === 0) return results;

  try {
    await mkdir(servers, { recursive: true });
    await removeAbandoned(servers);
    const work = await mkdtemp(join(servers, '.preparing-'));
    try {
      const labels = missing.map((kind) => PROGRAMS[kind].label).join(' and ');
      say(`Downloading a private copy of ${labels} with apt into ${servers} (once, nothing is installed)`);
      const { apt, complaint } = await PrivateApt.open(work);
      for (const kind of missing) results.set(kind, await makeCopy(kind, apt, work, join(servers, kind), complaint));
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  } catch (error) {
    const reason = `the cache folder cannot be used: ${(error as Error).message}`;
    for (const kind of missing) if (!results.has(kind)) results.set(kind, { reason });
  }
  return results;
}

async function makeCopy(
  kind: ProgramKind,
  apt: PrivateApt,
  work: string,
  destination: string,
  updateComplaint: string,
): Promise<CopyResult> {
  const details = PROGRAMS[kind];
  for (const packages of details.debianPackages) {
    const version = await apt.candidate(packages[0]!);
    if (version === undefined) continue;

    const debs = join(work, `${kind}-packages`);
    const copy = join(work, kind);
    await mkdir(debs);
    await mkdir(copy);
    const downloaded = await apt.download(packages, debs);
    if (!downloaded.ok) return { reason: `apt-get download ${packages.join(' ')} failed: ${downloaded.complaint}` };
    const libraries = await apt.missingDependencies(packages);
    if (libraries === undefined) {
      // One by one: no distribution has all of them, and each that comes helps.
      for (const library of details.debianLibraries) await apt.download([library], debs);
    } else if (libraries.length > 0) {
      const got = await apt.download(libraries, debs);
      if (!got.ok) return { reason: `apt-get download ${libraries.join(' ')} failed: ${got.complaint}` };
    }
    const files = await readdir(debs);
    for (const file of files) {
      const unpacked = await runTool('dpkg-deb', ['-x', join(debs, file), copy], { timeoutMs: 60_000 });
      if (!unpacked.ok) return { reason: `dpkg-deb -x ${file} failed: ${unpacked.complaint}` };
    }
    const manifest = await describe(kind, copy, files);
    if (manifest === undefined) return { reason: `${files.join(', ')} hold no ${details.binaries.join(' or ')}` };
    const checked = await checkBinary(kind, join(copy, manifest.executable), libraryPath(copy, manifest));
    if ('reason' in checked) return checked;
    await writeFile(join(copy, MANIFEST), JSON.stringify(manifest, null, 2));

    await mkdir(destination, { recursive: true });
    const final = join(destination, version.replace(/[^\w.+~-]/g, '_'));
    try {
      await rename(copy, final);
    } catch {
      // Another run was first and its copy is as good, or the folder there is damaged.
      const theirs = await knownCopy(kind, destination);
      if (theirs !== undefined) return theirs;
      await rm(final, { recursive: true, force: true });
      await rename(copy, final);
    }
    return (await knownCopy(kind, destination)) ?? { reason: `${final} cannot be used` };
  }
  const names = details.debianPackages.map((packages) => packages[0]).join(' or ');
  return { reason: [`this distribution has no package ${names}`, updateComplaint].filter(Boolean).join('; ') };
}

async function knownCopy(kind: ProgramKind, folder: string): Promise<ServerBinary | undefined> {
  const versions = await readdir(folder).catch(() => []);
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

async function describe(kind: ProgramKind, copy: string, packages: string[]): Promise<Manifest | undefined> {
  const paths = await readdir(copy, { recursive: true });
  const executable = PROGRAMS[kind].binaries.flatMap((name) =>
    paths.filter((path) => basename(path) === name && /^s?bin$/.test(basename(dirname(path)))),
  )[0];
  if (executable === undefined) return undefined;
  const libraries = paths.filter((path) => /\.so(\.|$)/.test(path));
  return { executable, libraryFolders: [...new Set(libraries.map((path) => dirname(path)))], packages };
}

function libraryPath(copy: string, manifest: Manifest): Record<string, string> {
  if (manifest.libraryFolders.length === 0) return {};
  const ours = manifest.libraryFolders.map((folder) => join(copy, folder));
  const theirs = process.env['LD_LIBRARY_PATH'];
  return { LD_LIBRARY_PATH: [...ours, ...(theirs ? [theirs] : [])].join(':') };
}

async function releaseName(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const value = (key: string) => new RegExp(`^${key}="?([^"\\n]*)"?$`, 'm').exec(text)?.[1];
  return `${value('ID') ?? 'unknown'}-${value('VERSION_ID') ?? value('VERSION_CODENAME') ?? 'rolling'}`;
}

async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith('.preparing-')) continue;
    const path = join(folder, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > ABANDONED_AFTER_MS) await rm(path, { recursive: true, force: true });
  }
}
