import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BroomwagonError, type PoolName } from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient, type MessagingConnection } from '@broomwagon/messaging';
import { ProcessGroup, provideServices, readyByFile, type Services } from '@broomwagon/testing';
import { Operations } from '../loop/operations';
import type { TrainerOptions } from '../options/trainer-options';
import { serviceEnvironment, workerEnvironment, type Load, type SystemPlan } from './environments';
import { EventsFile } from './events-file';
import { findEngines, Fleet, type FleetEngine } from './fleet';
import { SimulatorClient } from './simulator-client';
import { Supervisor } from './supervisor';

const CALL_DEADLINE_MS = 60_000;
const READY_TIMEOUT_MS = 60_000;
const GRACE_MS = 8_000;

/** What a started system is reached by. */
export interface StartedSystem {
  pool: PoolName;
  natsUrl: string;
  redisUrl: string;
  client: TypedClient;
  operations: Operations;
  fleet: Fleet;
  /** Undefined with real engines. */
  simulator?: SimulatorClient;
}

/** NATS, Redis and all our applications as processes of this one; ends whatever it started, in any state. */
export class RolloutSystem {
  /** Temporary files of this run; removed by `stop`. */
  readonly folder = mkdtempSync(join(tmpdir(), 'broomwagon-'));
  readonly logFolder: string;
  readonly supervisor: Supervisor;
  /** This file is `<dist>/apps/trainer/src/system/rollout-system.js`. */
  private readonly distFolder = join(__dirname, '../../../..');
  private readonly group: ProcessGroup;
  private readonly stopping = new AbortController();
  private services?: Promise<Services>;
  private connection?: MessagingConnection;
  private pool?: PoolName;

  constructor(
    private readonly options: TrainerOptions,
    private readonly load: Load,
    private readonly say: (line: string) => void,
  ) {
    this.logFolder = options.keepLogs ?? join(this.folder, 'logs');
    this.supervisor = new Supervisor(say);
    this.group = new ProcessGroup({ logFolder: this.logFolder, distFolder: this.distFolder });
  }

  /**
   * Starts everything and registers the engines.
   * @param realEngines engines that were asked already; empty = simulated ones
   * @throws BroomwagonError with the end of the log of the service that did not start
   */
  async start(realEngines: readonly FleetEngine[]): Promise<StartedSystem> {
    await mkdir(this.logFolder, { recursive: true });
    this.services = provideServices({ say: this.say });
    const { nats, redis } = await this.services;
    this.say(`${nats.description} [${nats.source}]`);
    this.say(`${redis.description} [${redis.source}]`);

    // On servers of somebody else, a pool of our own: another system may serve the usual one.
    const runId = randomBytes(4).toString('hex');
    const own = nats.source !== 'environment' && redis.source !== 'environment';
    const pool = this.options.pool ?? (own ? 'local' : `local-${runId}`);
    this.pool = pool;
    this.say(`Pool ${pool}; logs in ${this.logFolder}`);
    const plan = { natsUrl: nats.url, redisUrl: redis.url, pool, runId, load: this.load };
    const [simulated] = await Promise.all([
      realEngines.length > 0 ? undefined : this.startSimulator(),
      this.startServices(plan),
    ]);

    this.throwIfStopping();
    this.connection = await connectNats({ url: nats.url, name: 'trainer' });
    const client = new TypedClient(new MessagingClient(this.connection));
    const operations = new Operations(client, pool, {
      deadlineMs: CALL_DEADLINE_MS,
      signal: this.stopping.signal,
    });
    const engines = simulated?.engines ?? realEngines;
    const fleet = new Fleet(operations, engines, this.load.inflightPerEngine, runId);
    await fleet.register(0);
    const simulator = simulated?.client;
    return { pool, natsUrl: nats.url, redisUrl: redis.url, client, operations, fleet, simulator };
  }

  /** Writes every fact of the pool from now on to a file. */
  async record(path: string): Promise<EventsFile> {
    return EventsFile.create(path, this.connection!, this.pool!);
  }

  /** Ends everything that was started, also in the middle of `start`. Never throws. */
  async stop({ keepFolder = false } = {}): Promise<void> {
    this.stopping.abort();
    this.supervisor.stop();
    await this.connection?.drain(1_000);
    await this.group.stopAll(GRACE_MS).catch((error: unknown) => this.say(String(error)));
    const services = await this.services?.catch(() => undefined);
    await services?.stop().catch((error: unknown) => this.say(String(error)));
    if (!keepFolder) await rm(this.folder, { recursive: true, force: true });
  }

  /** SIGKILL to every process of ours, for those who cannot wait. NATS and Redis end with this process. */
  kill(): void {
    this.stopping.abort();
    this.supervisor.stop();
    for (const service of this.group.list()) service.kill('SIGKILL');
  }

  private async startServices(plan: SystemPlan): Promise<void> {
    const services = ['load-balancer', 'trainer-coordinator'];
    await Promise.all(services.map((name) => this.startService(name, name, serviceEnvironment(plan))));
    const workers = Array.from({ length: this.options.workers }, (_, index) => `worker-${index + 1}`);
    await Promise.all(workers.map((name) => this.startService(name, 'worker', workerEnvironment(plan, name))));
  }

  private async startService(name: string, app: string, environment: Record<string, string>): Promise<void> {
    const found = readyByFile(join(this.folder, `${name}.json`));
    this.throwIfStopping();
    const started = await this.group.start({
      name,
      app,
      ...found,
      environment: { ...environment, ...found.environment },
      readyTimeoutMs: READY_TIMEOUT_MS,
    });
    this.supervisor.watch(started, true);
  }

  /** All simulated engines in one process. It is not started again: its clocks are part of the measurement. */
  private async startSimulator(): Promise<{ client: SimulatorClient; engines: FleetEngine[] }> {
    const { engines, lengths, seed } = this.options;
    const readyFile = join(this.folder, 'engine-simulator.json');
    const program = join(this.distFolder, 'apps/engine-simulator/src/main.js');
    const values = { engines, port: 0, lengths, seed, speed: this.load.speed };
    const options = Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.throwIfStopping();
    const started = await this.group.start({
      name: 'engine-simulator',
      command: [process.execPath, program, ...options],
      environment: { READY_FILE: readyFile },
      ready: async () => existsSync(readyFile),
      readyTimeoutMs: READY_TIMEOUT_MS,
    });
    this.supervisor.watch(started, false);
    const { servers } = JSON.parse(await readFile(readyFile, 'utf8')) as {
      servers: { serverId: string; url: string }[];
    };
    const urls = servers.map(({ url }) => url);
    const found = await findEngines(urls, (index) => servers[index]!.serverId);
    return { client: new SimulatorClient(urls), engines: found };
  }

  private throwIfStopping(): void {
    if (this.stopping.signal.aborted) throw new BroomwagonError('SHUTTING_DOWN', 'The run was interrupted');
  }
}
