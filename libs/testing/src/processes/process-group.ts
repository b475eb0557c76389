import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BroomwagonError } from '@broomwagon/contracts';
import { ManagedProcess, type ProcessDescription, type ProcessExit } from './managed-process';

export interface ProcessGroupOptions {
  /** One `<name>.log` per process. Default: a new folder under the system's temporary one. */
  logFolder?: string;
  /** Given to each process, below its own. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** Gets every line of output as `[name] line`. */
  echo?: (line: string) => void;
  /** The folder with the built applications, `<distFolder>/apps/<app>/src/main.js`. Default `dist` of the cwd. */
  distFolder?: string;
}

/** A process of a group: either one of our applications by name, or any command. */
export type ServiceDescription = Omit<ProcessDescription, 'command' | 'logFile' | 'echo'> & {
  /** Default `<logFolder>/<name>.log`. */
  logFile?: string;
} & ({ app: string; command?: undefined } | { app?: undefined; command: ProcessDescription['command'] });

/** The processes of one system under test or one `npm start`; all end with `stopAll()` or with this process. */
export class ProcessGroup {
  readonly logFolder: string;
  private readonly processes = new Map<string, ManagedProcess>();

  constructor(private readonly options: ProcessGroupOptions = {}) {
    this.logFolder = options.logFolder ?? mkdtempSync(join(tmpdir(), 'broomwagon-logs-'));
  }

  /**
   * Starts a process and waits for its readiness: `ready: 'http://127.0.0.1:<port>/readyz'` or a function.
   *
   * @throws BroomwagonError UNAVAILABLE or TIMEOUT with the end of its log, INTERNAL when the name is taken.
   */
  async start(service: ServiceDescription): Promise<ManagedProcess> {
    const added = this.add(service);
    await added.start();
    return added;
  }

  /** A process of this group that is not started yet. @throws BroomwagonError INTERNAL when the name is taken */
  add(service: ServiceDescription): ManagedProcess {
    if (this.processes.get(service.name)?.running) {
      throw new BroomwagonError('INTERNAL', `A process named ${service.name} runs already in this group`);
    }
    const { app, command, ...rest } = service;
    const added = new ManagedProcess({
      logFile: join(this.logFolder, `${service.name}.log`),
      echo: this.options.echo,
      ...rest,
      command: command ?? [process.execPath, join(this.options.distFolder ?? 'dist', 'apps', app, 'src', 'main.js')],
      environment: { ...this.options.environment, ...service.environment },
    });
    this.processes.set(service.name, added);
    return added;
  }

  /** The process of that name. @throws BroomwagonError INTERNAL when there never was one. */
  get(name: string): ManagedProcess {
    const found = this.processes.get(name);
    if (found === undefined) throw new BroomwagonError('INTERNAL', `No process named ${name} in this group`);
    return found;
  }

  /** All processes ever started here, in that order, running or not. */
  list(): ManagedProcess[] {
    return [...this.processes.values()];
  }

  /**
   * Ends all: SIGTERM to every process at the same time, SIGKILL to the processes still there after `graceMs` (default
   * 10,000). Returns how each ended, also of processes that had ended before.
   */
  async stopAll(graceMs?: number): Promise<Map<string, ProcessExit>> {
    const exits = this.list().map(async (one) => [one.name, await one.stop(graceMs)] as const);
    return new Map(await Promise.all(exits));
  }
}
