import { defaultMetadataStorage } from 'class-transformer/cjs/storage';
import { validationMetadatasToSchemas } from 'class-validator-jsonschema';
import { ERROR_CODES } from '../errors';
import { ID_RULE, type IdKind } from '../ids';
import { MAX_MARGIN } from '../pool.dto';
import { OPERATIONS, SUBJECT_ROOT, type OperationName } from '../operations';
import { AbortAttemptsCommand, MoveLeasesCommand } from '../worker.dto';

type Json = Record<string, unknown>;

/** Schemas of replies, by type name; made from the TypeScript interfaces by the command line tool. */
export interface ReplySchemas {
  /** Definitions by type name, with `#/components/schemas/` references. */
  definitions: Record<string, Json>;
  /** Reply type of each operation. */
  replyOf: Record<string, string>;
}

const REF_PREFIX = '#/components/schemas/';
const WORKER_COMMANDS = [
  ['abort', AbortAttemptsCommand, 'stop these attempts and end each with request.fail.'],
  ['move', MoveLeasesCommand, 'end these calls, move their leases with lb.transfer and go on there.'],
] as const;

/**
 * AsyncAPI 3.0 document of the whole protocol, made from the DTO classes and the operations table.
 * Deterministic: the same sources give the same text, so that a stale copy is found by comparing.
 */
export function asyncApiDocument(replies: ReplySchemas): Json {
  const requests = validationMetadatasToSchemas({
    classTransformerMetadataStorage: defaultMetadataStorage,
    refPointerPrefix: REF_PREFIX,
    additionalConverters: {
      [ID_RULE]: ({ constraints }) => idSchema(constraints as [number, IdKind]),
      isMargin: {
        oneOf: [
          { type: 'integer', minimum: 0, maximum: MAX_MARGIN },
          { type: 'string', enum: ['never'] },
        ],
      },
    },
  }) as Record<string, Json>;
  const channels: Json = {};
  const operations: Json = {};
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const operation = OPERATIONS[name];
    const request = operation.request.name;
    requests[request] = { ...requests[request], type: 'object', additionalProperties: false };
    channels[name] = {
      address: `${SUBJECT_ROOT}.{pool}.${name}`,
      parameters: { pool: { $ref: '#/components/parameters/pool' } },
      messages: { request: { payload: { $ref: REF_PREFIX + request } } },
    };
    channels[`${name}.reply`] = {
      address: null,
      messages: {
        reply: { payload: { $ref: REF_PREFIX + replies.replyOf[name] } },
        error: { payload: { $ref: `${REF_PREFIX}ErrorReply` } },
      },
    };
    operations[name] = {
      action: 'receive',
      summary: `Answered by ${operation.owner}.`,
      channel: { $ref: `#/channels/${name}` },
      reply: {
        address: { location: '$message.header#/reply', description: 'The NATS reply subject.' },
        channel: { $ref: `#/channels/${escapePointer(`${name}.reply`)}` },
      },
    };
  }
  for (const [command, body, summary] of WORKER_COMMANDS) {
    requests[body.name] = { ...requests[body.name], type: 'object', additionalProperties: false };
    channels[`worker.${command}`] = {
      address: `${SUBJECT_ROOT}.{pool}.worker.{workerId}.${command}`,
      parameters: {
        pool: { $ref: '#/components/parameters/pool' },
        workerId: { description: 'The worker that holds them.' },
      },
      messages: { command: { payload: { $ref: REF_PREFIX + body.name } } },
    };
    operations[`worker.${command}`] = {
      action: 'send',
      summary: `To a worker, at least once: ${summary}`,
      channel: { $ref: `#/channels/worker.${command}` },
    };
  }
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Broomwagon protocol',
      version: '1',
      description:
        'Plain JSON over NATS request/reply. An error is `{"error": {...}}` with the headers Nats-Service-Error and Nats-Service-Error-Code.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    channels,
    operations,
    components: {
      parameters: { pool: { description: 'Name of the pool: letters, digits, _ and -.' } },
      schemas: sorted({ ...replies.definitions, ...requests, ErrorReply: errorReply() }),
    },
  };
}

/** Bytes are not characters, but no text of more characters has fewer bytes. */
function idSchema([mostBytes, kind]: [number, IdKind]): {
  type: 'string';
  minLength: number;
  maxLength: number;
  pattern: string;
} {
  const pattern = kind === 'token' ? '^[^\\s.*>\\p{Cc}]+$' : '^\\P{Cc}+$';
  return { type: 'string', minLength: 1, maxLength: mostBytes, pattern };
}

function errorReply(): Json {
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'retryable'],
        properties: {
          code: {
            enum: Object.keys(ERROR_CODES),
            description: Object.entries(ERROR_CODES)
              .map(([code, { about, retryable }]) => `${code}${retryable ? ' (retryable)' : ''}: ${about}`)
              .join('\n'),
          },
          message: { type: 'string' },
          retryable: { type: 'boolean' },
          field: { type: 'string' },
          retryAfterMs: { type: 'integer' },
          details: {},
        },
      },
    },
  };
}

function escapePointer(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}

function sorted(schemas: Record<string, Json>): Json {
  return Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
