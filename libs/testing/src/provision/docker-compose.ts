import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BroomwagonError } from '@broomwagon/contracts';
import type { Credentials } from './credentials';
import { runTool } from './run-tool';
import { SERVER_KINDS, type ServerKind } from './server-kind';

const ASK_TIMEOUT_MS = 10_000;
/** The first time the image is pulled. */
const UP_TIMEOUT_MS = 300_000;

/** Returns why Docker cannot give us servers, or undefined when it can. */
export async function whyNoDocker(composeFile: string | undefined): Promise<string | undefined> {
  const daemon = await runTool('docker', ['info', '--format', '{{.ServerVersion}}'], { timeoutMs: ASK_TIMEOUT_MS });
  if (!daemon.ok) return 'no Docker daemon answers';
  const compose = await runTool('docker', ['compose', 'version'], { timeoutMs: ASK_TIMEOUT_MS });
  if (!compose.ok) return 'Docker has no compose plugin';
  return composeFile === undefined ? 'no docker-compose.yml above the current folder' : undefined;
}

/**
 * One service of the root compose file, in a compose project of its own: it shares no container, volume or port with
 * a system the user has up from the same file.
 */
export class ComposeService {
  /** With the files that the compose file names, also to be taken down. */
  private readonly credentialsFolder = mkdtempSync(join(tmpdir(), 'broomwagon-credentials-'));

  constructor(
    readonly kind: ServerKind,
    private readonly composeFile: string,
    private readonly project: string,
    private readonly hostPort: number,
    private readonly credentials: Credentials,
  ) {}

  /** Starts it and returns its port on 127.0.0.1. @throws BroomwagonError UNAVAILABLE */
  async up(): Promise<number> {
    const details = SERVER_KINDS[this.kind];
    await this.credentials.writeTo(this.credentialsFolder);
    await this.compose(['up', '-d', '--no-deps', details.composeService], UP_TIMEOUT_MS);
    // Asked and not assumed: a compose file may fix the port.
    const shown = await this.compose(['port', details.composeService, String(details.containerPort)], ASK_TIMEOUT_MS);
    const port = Number(/:(\d+)\s*$/m.exec(shown)?.[1]);
    if (!Number.isInteger(port)) {
      throw new BroomwagonError('UNAVAILABLE', `docker-compose.yml publishes no port of ${details.composeService}`);
    }
    return port;
  }

  /** Removes the container and its volumes. */
  async down(): Promise<void> {
    await this.compose(['down', '--volumes', '--timeout', '5'], UP_TIMEOUT_MS);
    await rm(this.credentialsFolder, { recursive: true });
  }

  /** The command that removes it, for a watchdog. */
  get downCommand(): string[] {
    const down = ['docker', ...this.composeArguments, 'down', '--volumes', '--timeout', '5'];
    return ['sh', '-c', 'CREDENTIALS=$0 "$@"; rm -r "$0"', this.credentialsFolder, ...down];
  }

  /** Starts it again after `signal('SIGKILL')`, or in place of itself; the port stays. */
  async restart(): Promise<void> {
    await this.compose(['restart', '--timeout', '5', SERVER_KINDS[this.kind].composeService], UP_TIMEOUT_MS);
  }

  /** Sends a signal to the server in the container. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    await this.compose(['kill', '--signal', signal, SERVER_KINDS[this.kind].composeService], ASK_TIMEOUT_MS);
  }

  private get composeArguments(): string[] {
    return ['compose', '--file', this.composeFile, '--project-name', this.project];
  }

  private async compose(command: string[], timeoutMs: number): Promise<string> {
    const environment = {
      [SERVER_KINDS[this.kind].hostPortVariable]: String(this.hostPort),
      CREDENTIALS: this.credentialsFolder,
    };
    const done = await runTool('docker', [...this.composeArguments, ...command], { timeoutMs, environment });
    if (done.ok) return done.output;
    throw new BroomwagonError('UNAVAILABLE', `docker compose ${command.join(' ')} failed: ${done.complaint}`);
  }
}
