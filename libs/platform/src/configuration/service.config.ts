import { readFileSync } from 'node:fs';
import { IsIn, IsUrl, Matches, ValidateBy } from 'class-validator';
import { LOG_LEVELS } from '@broomwagon/contracts';
import { ConnectionsConfig, IsReadableFile } from './connections.config';
import { linkSilenceMs } from './link-silence';
import { LOG_FORMATS, type LogFormat } from '../logging/logging';
import { Env } from './env.decorator';

/** Requires both settings or neither setting, since a certificate without its key would be ignored. */
function IsGivenWith(other: 'httpTlsCert' | 'httpTlsKey', variable: string): PropertyDecorator {
  return ValidateBy({
    name: 'isGivenWith',
    validator: {
      validate: (_, args) => (args!.object as ServiceConfig)[other] !== undefined,
      defaultMessage: () => `needs ${variable}`,
    },
  });
}

/** Common configuration of all apps. Each app adds its fields in a derived class. */
export class ServiceConfig extends ConnectionsConfig {
  @Env('POOLS', 'pools to serve: * for all, or names separated by commas')
  @Matches(/^(\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$/, { each: true, message: 'must be *, or pool names' })
  pools: string[] = ['*'];

  @Env('REPLY_PREFIXES', 'prefixes of the inboxes to which replies may be sent')
  @Matches(/^[\w-]+(\.[\w-]+)*$/, { each: true, message: 'must be subject prefixes, as _INBOX' })
  replyPrefixes: string[] = ['_INBOX'];

  @Env('HTTP_HOST', 'address of the HTTP server: health and metrics; in gateway and admin-api all routes')
  httpHost: string = '127.0.0.1';

  @Env('HTTP_PORT', 'port of the HTTP server; 0: any free port', { min: 0, max: 65_535 })
  httpPort: number = 0;

  @Env('HTTP_TLS_CERT', 'file with the certificate chain of the HTTP server; HTTPS only, if given')
  @IsReadableFile()
  @IsGivenWith('httpTlsKey', 'HTTP_TLS_KEY')
  httpTlsCert?: string;

  @Env('HTTP_TLS_KEY', 'file with the key of HTTP_TLS_CERT')
  @IsReadableFile()
  @IsGivenWith('httpTlsCert', 'HTTP_TLS_CERT')
  httpTlsKey?: string;

  @Env('LOG_LEVEL', `one of ${LOG_LEVELS.join(', ')}, silent`)
  @IsIn([...LOG_LEVELS, 'silent'])
  logLevel: string = 'info';

  @Env('LOG_FORMAT', 'json, pretty (readable), or auto: pretty on a terminal, otherwise json')
  @IsIn(LOG_FORMATS)
  logFormat: LogFormat = 'auto';

  @Env('OTEL_EXPORTER_OTLP_ENDPOINT', 'address of an OpenTelemetry collector, as http://host:4318; default: no traces')
  @IsUrl({ protocols: ['http', 'https'], require_protocol: true, require_tld: false })
  otlpEndpoint?: string;

  @Env('MAX_IN_FLIGHT', 'requests handled at the same time; more are answered OVERLOADED', { min: 1 })
  maxInFlight: number = 1_024;

  @Env(
    'WORKER_TTL_MS',
    'time to live of workers and gateways: a silent one loses its leases after it; a third of it, 2 to 5 s, is the ' +
      'silence after which a link to NATS or Redis is cut; set it alike in all services',
    { min: 500, max: 3_600_000 },
  )
  workerTtlMs: number = 15_000;

  @Env('START_DEADLINE_MS', 'how long NATS may be unavailable at start', { min: 0 })
  startDeadlineMs: number = 15_000;

  @Env('SHUTDOWN_TIMEOUT_MS', 'maximum duration of a shutdown', { min: 0 })
  shutdownTimeoutMs: number = 25_000;

  @Env('BUILD_COMMIT', 'commit of the build, shown by broomwagon_build_info; default: the one npm run build has found')
  buildCommit?: string;

  @Env('READY_FILE', 'file to which {port, pid} is written when the service listens')
  readyFile?: string;

  override natsConfig() {
    return { ...super.natsConfig(), silenceMs: linkSilenceMs(this.workerTtlMs) };
  }

  override redisConfig() {
    return { ...super.redisConfig(), silenceMs: linkSilenceMs(this.workerTtlMs) };
  }

  /** Options of node:https; undefined: the server uses HTTP. */
  tls() {
    const { httpTlsCert: cert, httpTlsKey: key } = this;
    return cert && key
      ? { cert: readFileSync(cert), key: readFileSync(key), minVersion: 'TLSv1.2' as const }
      : undefined;
  }

  /** Returns the pools in the form that the transport needs. */
  servedPools(): '*' | string[] {
    return this.pools.includes('*') ? '*' : this.pools;
  }
}
