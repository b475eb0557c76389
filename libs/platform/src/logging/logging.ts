import { isBroomwagonError, outages, wireMessage, wireRecord } from '@broomwagon/contracts';
import { trace } from '@opentelemetry/api';
import {
  levels,
  pino,
  stdSerializers,
  stdTimeFunctions,
  type DestinationStream,
  type Logger,
  type LoggerOptions,
} from 'pino';
import type { Params } from 'nestjs-pino';
import { withoutCredentials } from './without-credentials';

type Fields = Record<string, unknown>;
export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

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
 * Creates a logger that writes one JSON object a line, without secrets. A failed call that an open outage explains is
 * written at level debug.
 * @param storedIds true for an app that uses encoded ids, so that logs show ids as callers chose them
 */
export function createLogger(app: string, level: string, storedIds: boolean, destination?: DestinationStream): Logger {
  const clean = (text: string) => withoutCredentials(storedIds ? wireMessage(text) : text);
  const cleanFields = (fields: Fields) => withoutCredentialsIn(storedIds ? wireRecord(fields) : fields);
  const options: LoggerOptions = {
    name: app,
    level,
    redact: {
      paths: [...SECRET_FIELDS, ...SECRET_FIELDS.map((field) => `*.${field}`), 'req.headers.authorization'],
      censor: '***',
    },
    mixin: () => {
      const span = trace.getActiveSpan()?.spanContext();
      return span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
    },
    serializers: { err: (error: unknown) => (error instanceof Error ? cleanFields(toErrorFields(error)) : error) },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { log: cleanFields, level: (label) => ({ level: label }) },
    hooks: {
      logMethod(parts, method, level) {
        const masked = parts.map((part: unknown) => (typeof part === 'string' ? clean(part) : part));
        if (level >= levels.values.warn! && isExplained(parts[0])) this.debug(...(masked as [object, string]));
        else method.apply(this, masked as Parameters<typeof method>);
      },
    },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/**
 * Returns parameters without a logger for each HTTP request. On Node 20 the AsyncLocalStorage of such loggers makes
 * every promise of the process slower: after one health probe, each acquire of a load-balancer took 50 % more CPU.
 */
export function loggerParams(logger: Logger): Params {
  return { pinoHttp: { logger, autoLogging: false, quietReqLogger: true }, forRoutes: [] };
}

/** Returns a destination with readable lines; undefined for JSON. */
export async function readableLog(format: LogFormat): Promise<DestinationStream | undefined> {
  if (format === 'json' || (format === 'auto' && !process.stdout.isTTY)) return undefined;
  const { default: pretty } = await import('pino-pretty');
  return pretty({ sync: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' });
}

/** Whether an open outage, which the log has, explains the error of a line. */
function isExplained(fields: unknown): boolean {
  return outages.explains((fields as { err?: unknown } | undefined)?.err);
}

function toErrorFields(error: Error): Fields {
  const fields: Fields = { ...stdSerializers.err(error) };
  // A typed error is an answer, whose stack says nothing; only INTERNAL is a defect.
  if (isBroomwagonError(error) && error.code !== 'INTERNAL') delete fields.stack;
  // An error of ioredis has the command with all arguments, for example prompts, or megabytes.
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
