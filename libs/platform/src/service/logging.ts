import { wireMessage, wireRecord } from '@broomwagon/contracts';
import { stdSerializers, type DestinationStream, type LoggerOptions } from 'pino';
import type { Params } from 'nestjs-pino';
import { withoutCredentials } from '../configuration/describe-config';

type Fields = Record<string, unknown>;

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

/**
 * Structured logs, one JSON object a line, with secrets left out.
 * @param storedIds whether the app knows ids as they are stored; its logs show them as the callers chose them
 */
export function loggerParams(app: string, level: string, storedIds: boolean, destination?: DestinationStream): Params {
  const clean = (text: string) => withoutCredentials(storedIds ? wireMessage(text) : text);
  const cleanFields = (fields: Fields) => withoutCredentialsIn(storedIds ? wireRecord(fields) : fields);
  const options: LoggerOptions = {
    name: app,
    level,
    redact: {
      paths: [...SECRET_FIELDS, ...SECRET_FIELDS.map((field) => `*.${field}`), 'req.headers.authorization'],
      censor: '***',
    },
    serializers: { err: (error: unknown) => (error instanceof Error ? cleanFields(fieldsOf(error)) : error) },
    formatters: { log: cleanFields },
    hooks: {
      logMethod(parts, method) {
        const masked = parts.map((part: unknown) => (typeof part === 'string' ? clean(part) : part));
        method.apply(this, masked as Parameters<typeof method>);
      },
    },
  };
  const http = { ...options, autoLogging: false, quietReqLogger: true };
  const pinoHttp: Params['pinoHttp'] = destination === undefined ? http : [http, destination];
  // No logger per HTTP request: its AsyncLocalStorage, once run, makes every promise of the process dearer for ever;
  // one health probe cost the load-balancer half as much CPU again for each acquire.
  return { pinoHttp, forRoutes: [] };
}

function fieldsOf(error: Error): Fields {
  const fields: Fields = { ...stdSerializers.err(error) };
  // An error of ioredis carries its command with all arguments, which may be somebody's prompt, or megabytes.
  const { command } = fields as { command?: { name?: unknown } };
  if (command !== undefined) fields.command = command?.name;
  return fields;
}

function withoutCredentialsIn(fields: Fields): Fields {
  const mapped: Fields = {};
  for (const [name, value] of Object.entries(fields)) {
    mapped[name] = typeof value === 'string' ? withoutCredentials(value) : value;
  }
  return mapped;
}
