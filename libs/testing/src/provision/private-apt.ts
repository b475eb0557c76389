import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runTool, type ToolResult } from './run-tool';

const UPDATE_TIMEOUT_MS = 180_000;
const DOWNLOAD_TIMEOUT_MS = 180_000;
const QUERY_TIMEOUT_MS = 60_000;

/**
 * Debian's package manager with lists, cache and locks in a folder of ours. It reads the machine's sources and keys
 * and writes nothing outside that folder, so it needs no root and works where the lists were removed (slim images).
 */
export class PrivateApt {
  private constructor(private readonly configuration: string) {}

  /** Fetches the package lists. An error of one source does not stop it: another source may have the packages. */
  static async open(folder: string): Promise<{ apt: PrivateApt; complaint: string }> {
    await mkdir(join(folder, 'state', 'lists', 'partial'), { recursive: true });
    await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true });
    const configuration = join(folder, 'apt.conf');
    await writeFile(configuration, configurationText(folder));
    const apt = new PrivateApt(configuration);
    const updated = await apt.run('apt-get', ['-qq', 'update'], UPDATE_TIMEOUT_MS);
    return { apt, complaint: updated.ok ? '' : updated.complaint };
  }

  /** The version that would be installed, undefined when the distribution has no such package. */
  async candidate(name: string): Promise<string | undefined> {
    const policy = await this.run('apt-cache', ['policy', name], QUERY_TIMEOUT_MS);
    const version = /^\s*Candidate: (\S+)$/m.exec(policy.output)?.[1];
    return version === '(none)' ? undefined : version;
  }

  /**
   * Packages that would have to be installed or upgraded for these packages, without themselves and without the C
   * library (a second one cannot be loaded by the system's own loader). Undefined when the resolver refuses.
   */
  async missingDependencies(names: readonly string[]): Promise<string[] | undefined> {
    const request = ['-s', '--no-install-recommends', 'install', ...names];
    const simulated = await this.run('apt-get', request, QUERY_TIMEOUT_MS);
    if (!simulated.ok) return undefined;
    const lines = simulated.output.matchAll(/^Inst (\S+)/gm);
    return [...lines].map((line) => line[1]!).filter((name) => !names.includes(name) && !/^libc6(:|$)/.test(name));
  }

  /** Downloads packages, with apt's own check of signatures and hashes, as .deb files into `folder`. */
  download(names: readonly string[], folder: string): Promise<ToolResult> {
    return this.run('apt-get', ['-qq', 'download', ...names], DOWNLOAD_TIMEOUT_MS, folder);
  }

  private run(tool: string, toolArguments: string[], timeoutMs: number, folder?: string): Promise<ToolResult> {
    return runTool(tool, ['-c', this.configuration, ...toolArguments], { timeoutMs, folder });
  }
}

/** `-c` is read last, so `#clear` takes away the machine's hooks, which may want root or clean up elsewhere. */
function configurationText(folder: string): string {
  return [
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
    // Descriptions for software centres: several times the size of the lists.
    '#clear Acquire::IndexTargets::deb::DEP-11;',
    '#clear Acquire::IndexTargets::deb::DEP-11-icons;',
    '#clear Acquire::IndexTargets::deb::DEP-11-icons-small;',
    '#clear Acquire::IndexTargets::deb::DEP-11-icons-hidpi;',
    '#clear Acquire::IndexTargets::deb::Contents-deb;',
    'Acquire::Languages "none";',
    'Acquire::Retries "2";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
    `Dir::State "${join(folder, 'state')}";`,
    'Dir::State::status "/var/lib/dpkg/status";',
    `Dir::Cache "${join(folder, 'cache')}";`,
    'Dir::Cache::pkgcache "pkgcache.bin";',
    'Dir::Cache::srcpkgcache "srcpkgcache.bin";',
    'Debug::NoLocking "true";',
    // Run by root, apt would hand the download to a user that cannot write into our folder.
    'APT::Sandbox::User "root";',
    '',
  ].join('\n');
}
