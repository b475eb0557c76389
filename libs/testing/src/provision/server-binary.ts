import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { runTool } from './run-tool';
import { PROGRAMS, type ProgramKind } from './server-kind';

/** An executable that was run once and printed its version. */
export interface ServerBinary {
  path: string;
  version: string;
  /** Variables that it needs beside our environment (LD_LIBRARY_PATH of a private copy). */
  environment: Record<string, string>;
}

/** Debian puts nats-server into /usr/sbin, which is not on the PATH of ordinary users. */
const FURTHER_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];

/**
 * Searches for the executable on PATH and where package managers put servers, or only on the given `pathVariable`.
 *
 * @returns the first executable that runs and is new enough, or the reasons against each.
 */
export async function findOnPath(
  kind: ProgramKind,
  pathVariable?: string,
): Promise<ServerBinary | { reasons: string[] }> {
  const reasons: string[] = [];
  const searched = pathVariable?.split(delimiter) ?? [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...FURTHER_FOLDERS,
  ];
  const folders = searched.filter((folder) => folder !== '');
  for (const name of PROGRAMS[kind].binaries) {
    for (const path of new Set(folders.map((folder) => join(folder, name)))) {
      const executable = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      );
      if (!executable) continue;
      const checked = await checkBinary(kind, path, {});
      if ('version' in checked) return checked;
      reasons.push(checked.reason);
    }
  }
  return { reasons: reasons.length > 0 ? reasons : [`no ${PROGRAMS[kind].binaries.join(' or ')} on PATH`] };
}

/** Asks an executable for its version, which also shows that its libraries are there. */
export async function checkBinary(
  kind: ProgramKind,
  path: string,
  environment: Record<string, string>,
): Promise<ServerBinary | { reason: string }> {
  const asked = await runTool(path, ['--version'], { timeoutMs: 10_000, environment });
  const version = /(?:v=?|version )(\d+)\.(\d+)[\w.-]*/.exec(asked.output);
  if (!asked.ok || version === null) return { reason: `${path} does not run: ${asked.complaint || asked.output}` };
  const [major, minor] = PROGRAMS[kind].minimumVersion;
  const found = [Number(version[1]), Number(version[2])] as const;
  const shown = version[0].replace(/^(v=?|version )/, '');
  if (found[0] < major || (found[0] === major && found[1] < minor)) {
    return { reason: `${path} is version ${shown}, at least ${major}.${minor} is needed` };
  }
  return { path, version: shown, environment };
}
