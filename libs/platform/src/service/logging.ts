import { stdSerializers, type DestinationStream, type LoggerOptions } from 'pino';
import type { Params } from 'nestjs-pino';
import { withoutCredentials } from '../configuration/describe-config';

const SECRET_FIELDS = [
  'password',
  'token',
  'secret',
  'authorization',
  'nkeySeed',
  'natsPassword',
  'natsToken',
  'natsNkeySeed',
];

/** Structured logs, one JSON object a line, with secrets left out. */
export function loggerParams(app: string, level: string, destination?: DestinationStream): Params {
  const options: LoggerOptions = {
    name: app,
    level,
    redact: {
      paths: [...SECRET_FIELDS, ...SECRET_FIELDS.map((field) => `*.${field}`), 'req.headers.authorization'],
      censor: '***',
    },
    serializers: { err: withoutSecrets },
    formatters: { log: (fields) => mapTexts(fields) },
    hooks: {
      logMethod(parts, method) {
        const masked = parts.map((part: unknown) => (typeof part === 'string' ? withoutCredentials(part) : part));
        method.apply(this, masked as Parameters<typeof method>);
      },
    },
  };
  const http = { ...options, autoLogging: false, quietReqLogger: true };
  const pinoHttp: Params['pinoHttp'] = destination === undefined ? http : [http, destination];
  // No logger per HTTP request: its AsyncLocalStorage, once run, makes every promise of the process dearer for ever; one
  // health probe cost the load-balancer half as much CPU again for each acquire.
  return { pinoHttp, forRoutes: [] };
}

function withoutSecrets(error: Error): unknown {
  if (!(error instanceof Error)) return error;
  const fields: Record<string, unknown> = { ...stdSerializers.err(error) };
  // An error of ioredis carries its command with all arguments, which may be somebody's prompt, or megabytes.
  const { command } = fields as { command?: { name?: unknown } };
  if (command !== undefined) fields.command = command?.name;
  return mapTexts(fields);
}

function mapTexts(fields: Record<string, unknown>): Record<string, unknown> {
  const mapped: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    mapped[name] = typeof value === 'string' ? withoutCredentials(value) : value;
  }
  return mapped;
}
