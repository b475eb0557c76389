import { SERVER_KINDS, type ServerKind } from './server-kind';

/** Tools by which a system is recognised, with how each server is installed there; sources: the package indexes. */
const NATS_BINARY = 'curl -sf https://binaries.nats.dev/nats-io/nats-server/v2@latest | sh';
const MANAGERS: readonly { tool: string; prefix: string; nats: string; redis: string; natsApart?: string }[] = [
  { tool: 'brew', prefix: 'brew install', nats: 'nats-server', redis: 'redis' },
  { tool: 'apt-get', prefix: 'sudo apt-get install', nats: 'nats-server', redis: 'redis-server' },
  // Upstream has only a file to install for Fedora and its kin, no repository.
  { tool: 'dnf', prefix: 'sudo dnf install', nats: '', redis: 'valkey', natsApart: NATS_BINARY },
  { tool: 'pacman', prefix: 'sudo pacman -S', nats: 'nats-server', redis: 'valkey' },
  { tool: 'apk', prefix: 'sudo apk add', nats: 'nats-server', redis: 'redis' },
];

/**
 * The exact command that makes the missing servers available on this system.
 *
 * @param hasTool returns whether a program is on PATH.
 */
export function installAdvice(
  missing: readonly ServerKind[],
  platform: NodeJS.Platform,
  hasTool: (tool: string) => boolean,
): string {
  const variables = missing.map((kind) => SERVER_KINDS[kind].urlVariable).join(' and ');
  const otherwise = `or install Python 3 with pip, or start Docker, or set ${variables} to servers that run already`;
  if (platform === 'win32') {
    return (
      'Windows has no such servers: run this in WSL (wsl --install -d Debian, then the same command there), ' +
      otherwise
    );
  }
  const manager = MANAGERS.find(({ tool }) => hasTool(tool)) ?? (platform === 'darwin' ? MANAGERS[0] : undefined);
  if (manager === undefined) {
    const names = missing.map((kind) => SERVER_KINDS[kind].binaries.join(' or ')).join(' and ');
    return `Install ${names} and put them on PATH, ${otherwise}`;
  }
  const apart = missing.includes('nats') ? manager.natsApart : undefined;
  const packages = missing.filter((kind) => kind !== 'nats' || apart === undefined).map((kind) => manager[kind]);
  const commands = packages.length > 0 ? [`${manager.prefix} ${packages.join(' ')}`] : [];
  if (apart !== undefined) commands.push(`${apart} && sudo mv nats-server /usr/local/bin/`);
  return `Run: ${commands.join(' && ')}  (${otherwise})`;
}
