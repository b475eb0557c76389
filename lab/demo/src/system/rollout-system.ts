import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BroomwagonError, type PoolName } from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient, type MessagingConnection } from '@broomwagon/messaging';
import { ConnectionsConfig, loadConfig } from '@broomwagon/platform';
import { hashOfToken } from '@broomwagon/state';
import {
  Credentials,
  ProcessGroup,
  provideServices,
  readyByFile,
  type ServerHandle,
  type Services,
} from '@broomwagon/testing';
import { GatewayClient } from '../../../reference-trainer/src/loop/gateway-client';
import { Operations } from '../../../reference-trainer/src/loop/operations';
import { DEFAULTS, type TrainerOptions } from '../options/trainer-options';
import { gatewayEnvironment, serviceEnvironment, workerEnvironment, type Load, type SystemPlan } from './environments';
import { EventsFile } from './events-file';
import { findEngines, Fleet, type FleetEngine } from '../../../reference-trainer/src/fleet/fleet';
import { createGatewayKey, revokeGatewayKey } from './gateway-key';
import { type CountedProcess, withPids } from './cpu-meter';
import { readCounter } from './read-counter';
import { SimulatorClient } from './simulator-client';
import { watchEngines, watchServer, type OutageOptions } from './outage-watch';
import { Supervisor } from './supervisor';

const CALL_DEADLINE_MS = 60_000;
const READY_TIMEOUT_MS = 60_000;
const GRACE_MS = 8_000;
/** Longest outage of a given NATS or Redis: calls are not repeated for longer. */
const SERVER_GIVE_UP_MS = CALL_DEADLINE_MS;
/** Longest time without a ready engine: engines that load weights are silent for minutes. */
const ENGINES_GIVE_UP_MS = 600_000;

const SIMULATOR = 'engine-simulator';

/** Clients and settings to use a started system. */
export interface StartedSystem {
  pool: PoolName;
  /** Settings of programs that connect to NATS and Redis as this user. */
  settingsOf: Services['getSettings'];
  client: TypedClient;
  /** Operations of the trainer, over NATS or over HTTP. */
  operations: Operations;
  /** All operations, over NATS. */
  control: Operations;
  fleet: Fleet;
  /** Client of the simulated engines; undefined with real engines. */
  simulator?: SimulatorClient;
  /** Number of restarts of the simulated engines, each of which resets their clocks. */
  simulatorRestarts(): number;
  /** Operations of operators, over NATS. */
  operator: Operations;
  /** All processes but the engines. */
  processes(): CountedProcess[];
  /** Sum of a counter of the coordinator over all series with a label, such as `outcome="sent"`. */
  metric(name: string, label: string): Promise<number>;
}

/** Starts NATS, Redis and all our applications as child processes, and can stop them in any state. */
export class RolloutSystem {
  /** Temporary files of this run; removed by `stop`. */
  readonly folder = mkdtempSync(join(tmpdir(), 'broomwagon-'));
  readonly logFolder: string;
  readonly supervisor: Supervisor;
  /** Folder of the build; the compiled file is `<dist>/lab/demo/src/system/rollout-system.js`. */
  private readonly distFolder = join(__dirname, '../../../..');
  private readonly group: ProcessGroup;
  private readonly stopping = new AbortController();
  private services?: Promise<Services>;
  private readonly connections: MessagingConnection[] = [];
  private pool?: PoolName;
  private fleet?: Fleet;
  private simulatorRestarts = 0;
  private revokeKey?: () => Promise<unknown>;

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
   * @param realEngines detected real engines; empty = simulated engines are started
   * @throws BroomwagonError with the end of the log of the service that did not start
   */
  async start(realEngines: readonly FleetEngine[]): Promise<StartedSystem> {
    await mkdir(this.logFolder, { recursive: true });
    this.services = Credentials.make().then((credentials) => provideServices({ say: this.say, credentials }));
    const { nats, redis, getSettings: settingsOf } = await this.services;
    if (!this.options.once) await this.startAdminApi(settingsOf('admin-api'));
    for (const server of [nats, redis]) {
      this.say(`${server.description} [${server.source}]`);
      this.watchServer(server);
    }

    // Given servers get a separate pool, since another system may use the default pool.
    const runId = randomBytes(4).toString('hex');
    const own = nats.source !== 'environment' && redis.source !== 'environment';
    const pool = this.options.pool ?? (own ? 'local' : `local-${runId}`);
    this.pool = pool;
    this.say(`Pool ${pool}; logs in ${this.logFolder}`);
    const { engineUrls } = this.options;
    const rebalances = this.options.rebalance !== 'off' && realEngines.length === 0;
    const plan = { settingsOf, pool, runId, load: this.load, engineUrls, rebalances };
    const [simulated] = await Promise.all([
      realEngines.length > 0 ? undefined : this.startSimulator(),
      this.startServices(plan),
    ]);

    this.throwIfStopping();
    const { via, once } = this.options;
    const gateway = via === 'nats' && once ? undefined : await this.startGateway(plan);
    const client = new TypedClient(new MessagingClient(await this.connect('trainer')));
    const options = { deadlineMs: CALL_DEADLINE_MS, signal: this.stopping.signal };
    const control = new Operations(client, pool, options);
    const operations = via === 'nats' ? control : new Operations(gateway!, pool, options);
    const engines = simulated?.engines ?? realEngines;
    const fleet = new Fleet(operations, control, engines, this.load.inflightPerEngine, runId);
    await fleet.register(0);
    this.fleet = fleet;
    this.orFail(watchEngines(control, this.outageOptions(ENGINES_GIVE_UP_MS)));
    const simulator = simulated?.client;
    const simulatorRestarts = () => this.simulatorRestarts;
    const operatorClient = new TypedClient(new MessagingClient(await this.connect('admin')));
    const operator = new Operations(operatorClient, pool, options);
    const { groupPlacement } = this.options.setup;
    if (groupPlacement !== 'group-spread') await operator.call('pool.configure', { groupPlacement });
    const processes = () => withPids([nats, redis], this.group.list(), SIMULATOR);
    const metric = async (name: string, label: string): Promise<number> =>
      readCounter((await readJson<{ port: number }>(join(this.folder, 'trainer-coordinator.json'))).port, name, label);
    const access = { pool, settingsOf, client, operations, control, operator };
    return { ...access, simulatorRestarts, processes, metric, fleet, simulator };
  }

  /** Connection settings of a user; the NATS_* and REDIS_* variables of the environment apply, as for the services. */
  private async loadConnections(user: string): Promise<ConnectionsConfig> {
    const env = { ...process.env, ...(await this.services!).getSettings(user) };
    return loadConfig(ConnectionsConfig, { env });
  }

  private async connect(user: string): Promise<MessagingConnection> {
    const connection = await connectNats({ ...(await this.loadConnections(user)).natsConfig(), name: user });
    this.connections.push(connection);
    return connection;
  }

  /** Starts to write every event of the pool to a file. */
  async record(path: string): Promise<EventsFile> {
    return EventsFile.create(path, await this.connect('viewer'), this.pool!);
  }

  /** Ends everything that was started, also in the middle of `start`. Never throws. */
  async stop({ keepFolder = false } = {}): Promise<void> {
    this.stopping.abort();
    this.supervisor.stop();
    await Promise.all(this.connections.map((connection) => connection.drain(1_000)));
    await this.revokeKey?.().catch((error: unknown) => this.say(String(error)));
    await this.group.stopAll(GRACE_MS).catch((error: unknown) => this.say(String(error)));
    const services = await this.services?.catch(() => undefined);
    await services?.stop().catch((error: unknown) => this.say(String(error)));
    if (!keepFolder) await rm(this.folder, { recursive: true, force: true });
  }

  /** Sends SIGKILL to all our processes, after a second interruption. NATS and Redis end with this process. */
  kill(): void {
    this.stopping.abort();
    this.supervisor.stop();
    for (const service of this.group.list()) service.kill('SIGKILL');
  }

  private async startServices(plan: SystemPlan): Promise<void> {
    const services = ['load-balancer', 'trainer-coordinator'];
    await Promise.all(services.map((name) => this.startService(name, name, serviceEnvironment(plan, name))));
    const workers = Array.from({ length: this.options.workers }, (_, index) => `worker-${index + 1}`);
    await Promise.all(workers.map((name) => this.startService(name, 'worker', workerEnvironment(plan, name))));
  }

  /** Starts the REST API, with a token that ends with this run. */
  private async startAdminApi(connections: Record<string, string>): Promise<void> {
    const token = randomBytes(32).toString('base64url');
    const environment = { ...connections, ADMIN_TOKEN_SHA256: hashOfToken(token) };
    await this.startService('admin-api', 'admin-api', environment);
    const { port } = await readJson<{ port: number }>(join(this.folder, 'admin-api.json'));
    const address = `http://127.0.0.1:${port}`;
    // The console takes the token out of the fragment, which a browser does not send.
    this.say(`Console:   ${address}/#token=${token}`);
    this.say(`REST API:  ${address}/api/v1 (docs/admin-api.md)`);
    this.say(`Token:     ${token}`);
    this.say(`Try:       BROOMWAGON_URL=http://127.0.0.1:${port} BROOMWAGON_TOKEN=${token} npx broomwagon status`);
  }

  /** Starts the gateway, with a key that ends with this run; without a key if API_KEYS is off. */
  private async startGateway(plan: SystemPlan): Promise<GatewayClient> {
    // The key is created as the user of admin-api, who may write keys.
    const redis = (await this.loadConnections('admin-api')).redisConfig();
    let key: string | undefined;
    if (process.env.API_KEYS !== 'off') {
      const { token, tokenId } = await createGatewayKey(redis, plan.pool);
      key = token;
      this.revokeKey = () => revokeGatewayKey(redis, tokenId);
    }
    let url = '';
    const sayAddress = async (): Promise<void> => {
      const { port } = await readJson<{ port: number }>(join(this.folder, 'gateway.json'));
      url = `http://127.0.0.1:${port}`;
      this.say(`Gateway:   ${url} (docs/gateway.md)`);
      this.say(`OpenAI:    OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=${key ?? 'none'}`);
    };
    await this.startService('gateway', 'gateway', gatewayEnvironment(plan, key ? 'on' : 'off'), sayAddress);
    await sayAddress();
    return new GatewayClient(() => url, key);
  }

  /** @param restarted called after each new start */
  private async startService(
    name: string,
    app: string,
    environment: Record<string, string>,
    restarted?: () => Promise<void>,
  ): Promise<void> {
    const found = readyByFile(join(this.folder, `${name}.json`));
    this.throwIfStopping();
    const service = this.group.add({
      name,
      app,
      ...found,
      environment: { ...environment, ...found.environment },
      readyTimeoutMs: READY_TIMEOUT_MS,
    });
    await this.supervisor.start(service, restarted);
  }

  /** Starts all simulated engines in one process. A restarted process has the same ports and none of its requests. */
  private async startSimulator(): Promise<{ client: SimulatorClient; engines: FleetEngine[] }> {
    const { engines, lengths, seed = DEFAULTS.seed } = this.options;
    const readyFile = join(this.folder, 'engine-simulator.json');
    const program = join(this.distFolder, 'lab/engine-simulator/src/main.js');
    const { model, lockstep } = this.options.setup;
    const values = { engines, port: 0, lengths, seed, speed: this.load.speed, 'model-preset': model };
    const options = Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
    if (lockstep) options.push('--lockstep');
    this.throwIfStopping();
    const simulator = this.group.add({
      name: SIMULATOR,
      command: [process.execPath, program, ...options],
      environment: { READY_FILE: readyFile },
      ready: async ({ pid }) => existsSync(readyFile) && (await readJson<SimulatorReady>(readyFile)).pid === pid,
      readyTimeoutMs: READY_TIMEOUT_MS,
    });
    await this.supervisor.start(simulator, async () => {
      this.simulatorRestarts += 1;
      await this.fleet?.findAgain();
    });
    const { servers } = await readJson<SimulatorReady>(readyFile);
    const urls = servers.map(({ url }) => url);
    const found = await findEngines(urls, (index) => servers[index]!.serverId);
    return { client: new SimulatorClient(urls), engines: found };
  }

  private watchServer(server: ServerHandle): void {
    if (server.process === undefined) {
      this.orFail(watchServer(server, this.outageOptions(SERVER_GIVE_UP_MS)));
    } else this.supervisor.watch(server.process);
  }

  private outageOptions(giveUpAfterMs: number): OutageOptions {
    return { say: this.say, signal: this.stopping.signal, giveUpAfterMs };
  }

  private orFail(work: Promise<void>): void {
    work.catch((error: unknown) => this.supervisor.failWith(error));
  }

  private throwIfStopping(): void {
    if (this.stopping.signal.aborted) throw new BroomwagonError('SHUTTING_DOWN', 'The run was interrupted');
  }
}

/** File that the engine simulator writes when all its engines listen. */
interface SimulatorReady {
  pid: number;
  servers: { serverId: string; url: string }[];
}

async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(path, 'utf8')) as T;
}
