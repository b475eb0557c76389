import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { BroomwagonError } from '@broomwagon/contracts';
import { whyNoDocker } from './docker-compose';
import { findComposeFile } from './find-compose-file';
import { installAdvice } from './install-advice';
import { cacheFolder, privateCopies } from './private-copy';
import { findOnPath, type ServerBinary } from './server-binary';
import { SERVER_KINDS, type ServerKind } from './server-kind';

/** Source of a server. */
export type ServerSource = 'environment' | 'path' | 'private-copy' | 'docker';

/** A way to start a server on this machine. */
export type FoundServer =
  | { source: 'path' | 'private-copy'; binary: ServerBinary; description: string }
  | { source: 'docker'; composeFile: string; description: string };

export interface FindOptions {
  /** Called with a line about a slow step (a download). Default: silence. */
  say?: (line: string) => void;
  /** Folder of private copies; default as `cacheFolder()`. */
  cache?: string;
  /** Searched in place of the PATH of this process. */
  pathVariable?: string;
  /** Default: the docker-compose.yml of the current folder or the nearest one above it. */
  composeFile?: string;
  /** Which ways may be used; the order is fixed. Default all three. */
  sources?: readonly FoundServer['source'][];
}

/**
 * Finds a way to start each of the servers: an executable on PATH, else a private copy, else Docker. Never a server that
 * runs already.
 *
 * @throws BroomwagonError UNAVAILABLE with the reasons against each way and the exact command for this system.
 */
export async function findServers(
  kinds: readonly ServerKind[],
  options: FindOptions = {},
): Promise<Map<ServerKind, FoundServer>> {
  const { say = () => undefined, sources = ['path', 'private-copy', 'docker'] } = options;
  const found = new Map<ServerKind, FoundServer>();
  const reasons: string[] = [];
  const missing = () => kinds.filter((kind) => !found.has(kind));

  if (sources.includes('path')) {
    for (const kind of kinds) {
      const binary = await findOnPath(kind, options.pathVariable);
      if ('version' in binary) {
        found.set(kind, { source: 'path', binary, description: `${binary.path} (version ${binary.version})` });
      } else reasons.push(...binary.reasons);
    }
  }
  if (sources.includes('private-copy') && missing().length > 0) {
    const copies = await privateCopies(missing(), say, options.cache ?? cacheFolder());
    for (const [kind, copy] of copies) {
      if ('version' in copy) {
        const description = `private copy ${copy.path} (version ${copy.version})`;
        found.set(kind, { source: 'private-copy', binary: copy, description });
      } else reasons.push(`${SERVER_KINDS[kind].label}: ${copy.reason}`);
    }
  }
  if (sources.includes('docker') && missing().length > 0) {
    const composeFile = options.composeFile ?? (await findComposeFile());
    const reason = await whyNoDocker(composeFile);
    if (reason === undefined && composeFile !== undefined) {
      for (const kind of missing()) {
        const description = `docker compose service ${SERVER_KINDS[kind].composeService} of ${composeFile}`;
        found.set(kind, { source: 'docker', composeFile, description });
      }
    } else if (reason !== undefined) reasons.push(reason);
  }

  const stillMissing = missing();
  if (stillMissing.length > 0) {
    const labels = stillMissing.map((kind) => SERVER_KINDS[kind].label).join(' and ');
    const command = installAdvice(stillMissing, process.platform, (tool) => isOnPath(tool, options.pathVariable));
    throw new BroomwagonError('UNAVAILABLE', `No ${labels} found. ${command}\n  ${reasons.join('\n  ')}`, {
      details: { missing: stillMissing, command, reasons },
    });
  }
  return found;
}

function isOnPath(tool: string, pathVariable = process.env['PATH'] ?? ''): boolean {
  return pathVariable.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, tool), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
