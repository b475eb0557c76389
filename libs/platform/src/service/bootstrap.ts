import { renameSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import { Logger, Module, type DynamicModule, type NestApplicationOptions, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { OPERATIONS } from '@broomwagon/contracts';
import {
  assertHandlersComplete,
  attachTransport,
  connectNats,
  MessagingClient,
  NatsTransport,
  type MessagingConnection,
  type NatsTransportOptions,
} from '@broomwagon/messaging';
import { Logger as PinoLogger } from 'nestjs-pino';
import type { DestinationStream } from 'pino';
import { describeConfig, printedConfig } from '../configuration/describe-config';
import { linkSilenceMs, minTtlMs, outlivesSilentLink } from '../configuration/link-silence';
import { loadConfig } from '../configuration/load-config';
import { ServiceConfig } from '../configuration/service.config';
import { HealthRegistry } from '../health/health-registry';
import { messageMetrics, Metrics, createReplySubjects } from '../metrics';
import { COMMIT, VERSION } from '../project';
import { deferEnd, endWith, handleEndSignals } from './end-signals';
import { createLogger, readableLog } from '../logging/logging';
import { PlatformModule } from './platform.module';
import { renewCertificate } from './renew-certificate';
import { startTracing } from './tracing';

const PRINT_CONFIG = '--print-config';
/**
 * Connections that wait until a busy service accepts them. The system drops further ones, and their clients try again
 * after up to a minute; the default of Node is 511. `net.core.somaxconn` of Linux is the upper bound (4,096).
 */
const MAX_WAITING_CONNECTIONS = 16_384;

export interface BootstrapOptions<Config extends ServiceConfig = ServiceConfig> {
  /** Name of the app, for queue group, logs and metrics. */
  app: string;
  /** Class of the configuration; default ServiceConfig. */
  configType?: new () => Config;
  /** Configuration; default: read from the environment. */
  config?: Config;
  /** Further options for the transport of the app, e.g. `placeholders`. */
  transport?: (config: Config) => Partial<NatsTransportOptions>;
  /**
   * Options and setup of the HTTP server, for an app with further routes. `configure` runs before the server listens.
   */
  http?: (config: Config) => {
    options?: NestApplicationOptions;
    configure?: (application: NestExpressApplication) => void;
  };
  /** Destination of the log; default stdout. */
  logDestination?: DestinationStream;
  /** Called when NATS is connected. From then on the start must not be interrupted. */
  onConnected?: () => void;
  /** Called when a shutdown has passed its deadline; default: the process exits with 1. */
  onShutdownDeadline?: () => void;
}

export interface RunningService<Config extends ServiceConfig = ServiceConfig> {
  application: NestExpressApplication;
  config: Config;
  transport: NatsTransport;
  httpPort: number;
  /** Resolves, with the reason, when only a restart of the process helps. */
  needsRestart: Promise<Error>;
  /** Shuts down within one deadline: not ready, hooks of Nest, drain of the transport, `onApplicationShutdown`. */
  close(): Promise<void>;
}

/**
 * Starts an app: configuration, NATS, Nest with its HTTP server, handlers, readiness.
 * @throws ConfigurationError; BroomwagonError UNAVAILABLE if NATS is not reachable within START_DEADLINE_MS
 */
export async function bootstrapService<Config extends ServiceConfig = ServiceConfig>(
  appModule: Type | DynamicModule,
  options: BootstrapOptions<Config>,
): Promise<RunningService<Config>> {
  const config = options.config ?? loadConfig(options.configType ?? (ServiceConfig as new () => Config));
  const name = `broomwagon-${options.app}`;
  const connection = await connectNats({ ...config.natsConfig(), name, startDeadlineMs: config.startDeadlineMs });
  options.onConnected?.();
  try {
    const stopTracing = await startTracing(options.app, config.otlpEndpoint, connection.replicaId);
    return await start(appModule, options, config, connection, stopTracing);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * Runs an app as a process, with `--print-config`. SIGTERM and SIGINT shut down gracefully; before NATS is connected
 * they end the process at once. A failed start prints the reason and exits with 1.
 */
export async function runService<Config extends ServiceConfig = ServiceConfig>(
  appModule: Type | DynamicModule,
  options: BootstrapOptions<Config>,
): Promise<void> {
  handleEndSignals();
  checkArguments(options.app);
  try {
    if (process.argv.includes(PRINT_CONFIG)) {
      const config = options.config ?? loadConfig(options.configType ?? (ServiceConfig as new () => Config));
      process.stdout.write(`${printedConfig(config)}\n`);
      return;
    }
    const service = await bootstrapService(appModule, { ...options, onConnected: deferEnd });
    const logger = new Logger(options.app);
    const shutDown = async (exitCode: number): Promise<void> => {
      try {
        await service.close();
        process.exit(exitCode);
      } catch (error) {
        logger.error({ err: error }, 'The shutdown failed');
        process.exit(1);
      }
    };
    endWith(() => void shutDown(0));
    void service.needsRestart.then((reason) => {
      logger.fatal(`This process ends, since only a restart helps: ${reason.message}`);
      return shutDown(1);
    });
  } catch (error) {
    const says = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${options.app} cannot start: ${says}\n`);
    process.exit(1);
  }
}

/** Ends the process for an unknown argument, because services have only `--print-config` and `--help`. */
function checkArguments(app: string): void {
  const given = process.argv.slice(2).find((argument) => argument !== PRINT_CONFIG);
  if (given === undefined) return;
  const usage = `Settings come from the environment; ${PRINT_CONFIG} lists them with their values.\n`;
  if (given === '--help' || given === '-h') {
    process.stdout.write(`${app} [${PRINT_CONFIG}]\n${usage}`);
    process.exit(0);
  }
  process.stderr.write(`${app}: unknown argument '${given}'. ${usage}`);
  process.exit(2);
}

async function start<Config extends ServiceConfig>(
  appModule: Type | DynamicModule,
  options: BootstrapOptions<Config>,
  config: Config,
  connection: MessagingConnection,
  stopTracing: () => Promise<void>,
): Promise<RunningService<Config>> {
  const metrics = new Metrics(options.app, 'pool' in config ? String(config.pool) : undefined);
  metrics.collectProcess();
  metrics
    .gauge('build_info', 'Always 1; version and commit of this build', ['version', 'commit'])
    .set({ version: VERSION, commit: config.buildCommit ?? COMMIT }, 1);
  const reconnects = metrics.counter('nats_reconnects_total', 'Times that the connection to NATS was restored');
  connection.onReconnect = () => reconnects.inc();
  const replySubjects = createReplySubjects(config.replyPrefixes, metrics);
  const transport = new NatsTransport(connection, {
    queueGroup: options.app,
    pools: config.servedPools(),
    maxInFlight: config.maxInFlight,
    // The drain gets a part of the time, so that later steps of the shutdown have time too.
    drainDeadlineMs: Math.ceil(config.shutdownTimeoutMs * 0.8),
    metrics: messageMetrics(metrics),
    replySubjects,
    ...options.transport?.(config),
  });
  const logDestination = options.logDestination ?? (await readableLog(config.logFormat));
  const platform = PlatformModule.forService({
    config,
    connection,
    client: new MessagingClient(connection, replySubjects),
    transport,
    metrics,
    app: options.app,
    logger: createLogger(options.app, config.logLevel, ownsOperations(options.app), logDestination),
  });
  @Module({ imports: [platform, appModule] })
  class ServiceModule {}
  const http = options.http?.(config);
  const application = await NestFactory.create<NestExpressApplication>(ServiceModule, {
    bufferLogs: true,
    abortOnError: false,
    forceCloseConnections: true,
    httpsOptions: config.tls(),
    ...http?.options,
  });
  application.disable('x-powered-by');
  renewCertificate(application.getHttpServer() as Server, () => config.tls());
  http?.configure?.(application);
  application.useLogger(application.get(PinoLogger));
  const logger = new Logger(options.app);
  attachTransport(application, transport);
  assertHandlersComplete(options.app, transport.registeredPatterns());
  await application.init();
  await application.startAllMicroservices();
  // Nest passes all options of a listening socket on, but its types know fewer.
  const { listen } = application as unknown as { listen(options: ListenOptions): Promise<unknown> };
  await listen.call(application, { port: config.httpPort, host: config.httpHost, backlog: MAX_WAITING_CONNECTIONS });
  const httpPort = (application.getHttpServer().address() as AddressInfo).port;
  const health = application.get(HealthRegistry);
  health.markStarted();
  logger.log(
    { config: Object.fromEntries(describeConfig(config).map((row) => [row.variable, row.value])) },
    'configured',
  );
  if (!outlivesSilentLink(config.workerTtlMs)) {
    const silenceMs = linkSilenceMs(config.workerTtlMs);
    logger.warn(
      `WORKER_TTL_MS is ${config.workerTtlMs}: leases may expire before a dead link is noticed, after ${silenceMs} ` +
        `ms, and dialed again; set it to ${minTtlMs(silenceMs)} or more`,
    );
  }
  logger.log({ httpHost: config.httpHost, httpPort, pid: process.pid, pools: config.pools }, 'listening');
  writeReadyFile(config.readyFile, httpPort);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= shutDown(application, health, config, options, stopTracing);
    return closing;
  };
  return { application, config, transport, httpPort, needsRestart: health.needsRestart, close };
}

async function shutDown(
  application: NestExpressApplication,
  health: HealthRegistry,
  config: ServiceConfig,
  options: Pick<BootstrapOptions, 'app' | 'onShutdownDeadline'>,
  stopTracing: () => Promise<void>,
): Promise<void> {
  const logger = new Logger(options.app);
  logger.log('shutting down');
  health.markDraining();
  const deadline = setTimeout(() => {
    logger.fatal(`The shutdown took longer than ${config.shutdownTimeoutMs} ms`);
    (options.onShutdownDeadline ?? (() => process.exit(1)))();
  }, config.shutdownTimeoutMs);
  try {
    await application.close();
    await stopTracing();
    logger.log('stopped');
  } finally {
    clearTimeout(deadline);
  }
}

/** Whether an app owns operations. Such an app encodes the ids of its requests (decisions/0037). */
function ownsOperations(app: string): boolean {
  return Object.values(OPERATIONS).some((operation) => operation.owner === app);
}

/** Writes the ready file with a rename, so that a process manager never reads a part of the file. */
function writeReadyFile(path: string | undefined, port: number): void {
  if (path !== undefined) {
    writeFileSync(`${path}.tmp`, JSON.stringify({ port, pid: process.pid }));
    renameSync(`${path}.tmp`, path);
  }
}
