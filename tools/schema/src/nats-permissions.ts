import {
  AUDIT_STREAM,
  auditSubject,
  EVENTS_STREAM,
  eventSubject,
  gatewaySubject,
  type OperationName,
  OPERATIONS,
  buildPattern,
  replicaSubject,
  ROUTES,
  TRAINER_OPERATIONS,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { LOG_LEVEL_PATTERN } from '../../../libs/contracts/src/log-level.dto';
import { READINESS_PATTERN } from '../../../libs/contracts/src/readiness.dto';

/** Permissions of one user of NATS. Its inboxes are below `_INBOX.<name>`. */
interface Role {
  /** Operations that it calls. */
  calls: readonly OperationName[];
  publish?: readonly string[];
  /** A queue group after a space: only members of this group may subscribe. */
  subscribe?: readonly string[];
}

const EVERYTHING = '>';
/** Subjects that every replica of every service takes. */
const SERVICE_PATTERNS = [LOG_LEVEL_PATTERN, READINESS_PATTERN];
const ALL = Object.keys(OPERATIONS) as OperationName[];
/** Calls of all programs that hold leases. */
const OF_HOLDERS: readonly OperationName[] = [
  'lb.acquire',
  'lb.release',
  'lb.status',
  'weights.status',
  'worker.deregister',
  'worker.heartbeat',
  'worker.register',
  'worker.sync',
];
const OF_TRAINERS = [...TRAINER_OPERATIONS.keys()];
/** Operations that admin-api offers. */
const OF_ADMIN = ALL.filter((name) => ROUTES.some(({ operation }) => operation === name));
const CHANGES = new Set(ROUTES.filter(({ method }) => method !== 'GET').map(({ operation }) => operation));

/** A service that owns operations: load-balancer and trainer-coordinator. */
function owner(app: 'load-balancer' | 'trainer-coordinator', publish: readonly string[] = []): Role {
  const operations = ALL.filter((name) => OPERATIONS[name].owner === app);
  return {
    calls: [],
    publish,
    subscribe: [
      ...operations.flatMap((name) => [`${buildPattern(name)} ${app}`, replicaSubject('*', '*', name)]),
      ...SERVICE_PATTERNS,
    ],
  };
}

const streamCalls = (stream: string) => ['INFO', 'CREATE', 'UPDATE'].map((call) => `$JS.API.STREAM.${call}.${stream}`);
const readCalls = (stream: string) => [
  `$JS.API.STREAM.MSG.GET.${stream}`,
  ...['CREATE', 'INFO', 'DELETE', 'MSG.NEXT'].map((call) => `$JS.API.CONSUMER.${call}.${stream}.>`),
];

/** All users of NATS by name. A service has the name of its app. */
export const NATS_ROLES: Readonly<Record<string, Role>> = {
  'load-balancer': owner('load-balancer'),
  'trainer-coordinator': owner('trainer-coordinator', [
    eventSubject('*', '>'),
    workerCommandSubject('*', '*', 'abort'),
    workerCommandSubject('*', '*', 'move'),
    '$JS.API.INFO',
    '$JS.API.STREAM.NAMES',
    ...streamCalls(EVENTS_STREAM),
  ]),
  /** Also programs that use the Python client: they write payloads over NATS, and subscribe without a queue group. */
  worker: {
    calls: [
      ...OF_HOLDERS,
      'lb.acquire-many',
      'lb.finish-session',
      'lb.release-many',
      'lb.transfer',
      'payload.get',
      'payload.get-many',
      'payload.put',
      'payload.stat',
      'pool.find',
      'request.claim',
      'request.complete',
      'request.complete-many',
      'request.fail',
      'request.save',
      'request.save-many',
      'request.segments',
    ],
    subscribe: [
      workerCommandSubject('*', '*', 'abort'),
      workerCommandSubject('*', '*', 'move'),
      `${workerCommandSubject('*', '*', 'abort')} worker`,
      `${workerCommandSubject('*', '*', 'move')} worker`,
      ...SERVICE_PATTERNS,
    ],
  },
  gateway: {
    calls: [
      ...OF_HOLDERS,
      ...OF_TRAINERS,
      'lb.acquire-many',
      'lb.finish-session',
      'lb.release-many',
      'lb.sessions',
      'lb.transfer',
      'pool.pause',
      'pool.resume',
      'server.list',
      'server.register',
      'server.remove',
      'server.update',
    ],
    publish: [gatewaySubject('*', 'abort')],
    subscribe: [
      gatewaySubject('*', 'abort'),
      `${workerCommandSubject('*', '*', 'abort')} gateway`,
      `${workerCommandSubject('*', '*', 'move')} gateway`,
      ...SERVICE_PATTERNS,
    ],
  },
  'admin-api': {
    calls: OF_ADMIN,
    publish: [
      ...SERVICE_PATTERNS,
      auditSubject('*', '>'),
      '$JS.API.INFO',
      ...streamCalls(AUDIT_STREAM),
      `$JS.API.STREAM.INFO.${EVENTS_STREAM}`,
      ...[AUDIT_STREAM, EVENTS_STREAM].flatMap(readCalls),
    ],
    subscribe: SERVICE_PATTERNS,
  },
  /**
   * A trainer also reads the load of the pool, registers its engines with their weights, and uses the prompt memory.
   */
  trainer: {
    calls: [
      ...OF_TRAINERS.filter((name) => TRAINER_OPERATIONS.get(name) === 'trainer'),
      'lb.status',
      'pool.find',
      'prompt.lengths',
      'prompt.remember',
      'server.list',
      'server.register',
      'server.update',
    ],
  },
  /** A program beside an engine that registers it, reports its state, and drains it. */
  engine: {
    calls: ['server.register', 'server.heartbeat', 'server.update', 'server.drain', 'server.remove'],
  },
  /** People and monitors: reads only. */
  viewer: {
    calls: OF_ADMIN.filter((name) => !CHANGES.has(name)),
    subscribe: [eventSubject('*', '>')],
  },
  /** People with all permissions, for example to copy and restore streams. */
  admin: { calls: ALL, publish: [EVERYTHING], subscribe: [EVERYTHING] },
};

/** The subjects of a role. */
export function buildPermissions(name: string): { publish: string[]; subscribe: string[] } {
  const { calls, publish = [], subscribe = [] } = NATS_ROLES[name]!;
  if (publish.includes(EVERYTHING)) return { publish: [EVERYTHING], subscribe: [...subscribe] };
  const requests = calls.flatMap((call) => [buildPattern(call), replicaSubject('*', '*', call)]);
  return {
    publish: [...new Set([...requests, ...publish, ...inboxesOfCallers(name)])],
    subscribe: [...subscribe, `_INBOX.${name}.>`],
  };
}

/** Where a role sends replies: the inboxes of callers of its operations, and of callers of every service. */
function inboxesOfCallers(name: string): string[] {
  const callers = Object.keys(NATS_ROLES).filter((caller) => {
    const { calls, publish = [] } = NATS_ROLES[caller]!;
    const callsServices =
      [...SERVICE_PATTERNS, EVERYTHING].some((subject) => publish.includes(subject)) &&
      SERVICE_PATTERNS.some((subject) => NATS_ROLES[name]!.subscribe?.includes(subject));
    return callsServices || calls.some((call) => OPERATIONS[call].owner === name);
  });
  return callers.map((caller) => `_INBOX.${caller}.>`);
}

/** Name of the variable with the permissions of a role in permissions.conf. */
const toVariable = (name: string) => `${name.replaceAll('-', '_')}_permissions`;

/** The text of deploy/nats/permissions.conf. */
export function natsPermissions(): string {
  const list = (subjects: readonly string[]) =>
    `[\n${subjects.map((one) => `    ${JSON.stringify(one)}\n`).join('')}  ]`;
  const roles = Object.keys(NATS_ROLES).map((name) => {
    const { publish, subscribe } = buildPermissions(name);
    return `${toVariable(name)} {\n  publish: ${list(publish)}\n  subscribe: ${list(subscribe)}\n}\n`;
  });
  return `# Permissions of the users of NATS, which nats.conf names. Made by npm run schema from
# tools/schema/src/nats-permissions.ts: do not edit.
${roles.join('\n')}`;
}
