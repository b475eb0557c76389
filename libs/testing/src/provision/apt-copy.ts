import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { completeCopy, type CopyResult, fillFolder } from './copy-folder';
import { PrivateApt } from './private-apt';
import { runTool } from './run-tool';
import { PROGRAMS, type ProgramKind } from './server-kind';

const EXECUTABLE_FOLDERS = /^s?bin$/;

/**
 * Gives programs as copies of the distribution's packages: downloaded with apt, unpacked into
 * `<servers>/<release>/<program>/<version>`, nothing installed. A copy that is there already is used without the
 * network.
 */
export async function getAptCopies<Kind extends ProgramKind>(
  kinds: readonly Kind[],
  servers: string,
  say: (line: string) => void,
): Promise<Map<Kind, CopyResult>> {
  const architecture = await runTool('dpkg', ['--print-architecture'], { timeoutMs: 10_000 });
  const aptGet = await runTool('apt-get', ['--version'], { timeoutMs: 10_000 });
  if (!architecture.ok || !aptGet.ok) {
    return new Map(kinds.map((kind) => [kind, { reason: 'no apt-get and dpkg here' }]));
  }
  const folder = join(servers, `${await releaseName()}-${architecture.output.trim()}`);
  const make = async (missing: readonly Kind[], work: string) => {
    const labels = missing.map((kind) => PROGRAMS[kind].label).join(' and ');
    say(`Downloading a private copy of ${labels} with apt into ${folder} (once, nothing is installed)`);
    const { apt, complaint } = await PrivateApt.open(work);
    const results = new Map<Kind, CopyResult>();
    for (const kind of missing) results.set(kind, await makeCopy(kind, apt, work, join(folder, kind), complaint));
    return results;
  };
  return fillFolder(folder, kinds, { make });
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
    return completeCopy({
      kind,
      copy,
      destination,
      version,
      executableFolders: EXECUTABLE_FOLDERS,
      packages: files,
    });
  }
  const names = details.debianPackages.map((packages) => packages[0]).join(' or ');
  return { reason: [`this distribution has no package ${names}`, updateComplaint].filter(Boolean).join('; ') };
}

async function releaseName(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const value = (key: string) => new RegExp(`^${key}="?([^"\\n]*)"?$`, 'm').exec(text)?.[1];
  return `${value('ID') ?? 'unknown'}-${value('VERSION_ID') ?? value('VERSION_CODENAME') ?? 'rolling'}`;
}
