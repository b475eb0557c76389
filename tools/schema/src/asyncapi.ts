import { ERROR_CODES, OPERATIONS, SUBJECT_ROOT, type OperationName } from '@broomwagon/contracts';
import { componentSchemas } from './components';
import { getComponent, COMPONENTS, type Components, type Json } from './json-schema';
import { readReplyTypes } from './reply-types';

/** Commands that services send to a worker: name, type and summary. */
const WORKER_COMMANDS = [
  ['abort', 'AbortAttemptsCommand', 'stop these attempts and end each with request.fail.'],
  [
    'move',
    'MoveLeasesCommand',
    'end these calls, move their leases with lb.transfer, and continue on the new servers.',
  ],
] as const;

const POOL = { $ref: '#/components/parameters/pool' };

/**
 * AsyncAPI 3.0 document of the whole protocol, made from the DTO classes and the operations table.
 * Deterministic: the same sources give the same text, so that a stale copy is found by comparing.
 * @param root folder of the repository
 */
export function asyncApiDocument(root: string): Json {
  const replyOf = readReplyTypes(root);
  const broadcasts = ['SetLogLevelRequest', 'GetReadinessRequest'];
  const requests = [...Object.values(OPERATIONS).map(({ request }) => request.name), ...broadcasts];
  const commands = WORKER_COMMANDS.map(([, type]) => type);
  const replies = [...Object.values(replyOf), 'LogLevelReply', 'ReadinessReply'];
  const sent = [...replies, ...commands, 'PoolEvent', 'ErrorReply', 'SegmentPayload'];
  const schemas = componentSchemas(root, [...requests, 'Prompt'], sent);
  schemas.ErrorCode!.description = Object.entries(ERROR_CODES)
    .map(([code, { about, retryable }]) => `${code}${retryable ? ' (retryable)' : ''}: ${about}`)
    .join('\n');
  const channels: Json = {};
  const operations: Json = {};
  const addOperation = (name: string, request: string, reply: string, answeredBy: string): void => {
    channels[name] = channel(name, {}, { request: message(request) });
    channels[`${name}.reply`] = { address: null, messages: { reply: message(reply), error: message('ErrorReply') } };
    operations[name] = {
      action: 'receive',
      summary: `Answered by ${answeredBy}.`,
      channel: { $ref: `#/channels/${name}` },
      reply: {
        address: { location: '$message.header#/reply', description: 'The NATS reply subject.' },
        channel: { $ref: `#/channels/${name}.reply` },
      },
    };
  };
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const { owner, request } = OPERATIONS[name];
    schemas[replyOf[name]!]!.description ??= `Reply of \`${name}\`.`;
    addOperation(name, request.name, replyOf[name]!, owner);
  }
  addOperation('service.log-level', 'SetLogLevelRequest', 'LogLevelReply', 'every replica that it names');
  addOperation('service.readiness', 'GetReadinessRequest', 'ReadinessReply', 'every replica that serves the pool');
  for (const [command, type, summary] of WORKER_COMMANDS) {
    const name = `worker.${command}`;
    const parameters = { workerId: { description: 'The worker that holds them.' } };
    channels[name] = channel(`worker.{workerId}.${command}`, parameters, { command: message(type) });
    operations[name] = sending(name, `To a worker, at least once: ${summary}`);
  }
  for (const [type, schema] of listEvents(schemas)) {
    channels[`event.${type}`] = channel(`event.${type}`, {}, { event: message(schema) });
    operations[`event.${type}`] = sending(`event.${type}`, String(schemas[schema]!.description));
  }
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Broomwagon protocol',
      version: '1',
      description: [
        'Plain JSON over NATS request/reply. An error is `{"error": {...}}` with the headers Nats-Service-Error and',
        'Nats-Service-Error-Code. The schemas are JSON Schema 2020-12. An unknown field of a request is refused; a',
        'later version may add fields to replies, events and commands. A `null` in a request counts as absent.',
      ].join(' '),
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    channels,
    operations,
    components: {
      parameters: { pool: { description: 'Name of the pool: letters, digits, _ and -.' } },
      schemas,
    },
  };
}

function channel(address: string, parameters: Json, messages: Json): Json {
  return { address: `${SUBJECT_ROOT}.{pool}.${address}`, parameters: { pool: POOL, ...parameters }, messages };
}

function message(type: string): Json {
  return { payload: { $ref: COMPONENTS + type } };
}

function sending(channelName: string, summary: string): Json {
  return { action: 'send', summary, channel: { $ref: `#/channels/${channelName}` } };
}

/** Each event's type as its subject has it, with the name of its schema. */
function listEvents(schemas: Components): [string, string][] {
  const members = schemas.PoolEvent!.anyOf as Json[];
  return members.map((member) => {
    const name = getComponent(member);
    const { type } = schemas[name]!.properties as { type: { const: string } };
    return [type.const, name];
  });
}
