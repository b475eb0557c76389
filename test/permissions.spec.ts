import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import {
  AUDIT_STREAM,
  auditSubject,
  EVENTS_STREAM,
  eventSubject,
  gatewaySubject,
  type OperationName,
  OPERATIONS,
  replicaSubject,
  buildSubject,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { connectNats, MessagingClient, type MessagingConnection } from '@broomwagon/messaging';
import { requestRaw } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { logLevelSubject } from '../libs/contracts/src/log-level.dto';
import { readinessSubject } from '../libs/contracts/src/readiness.dto';
import { NATS_ROLES } from '../tools/schema/src/nats-permissions';
import { RestrictedServers } from './system/restricted-servers';

const POOL = 'p';
/** Roles with limited permissions. */
const ROLES = Object.keys(NATS_ROLES).filter((role) => role !== 'admin');
const NAMES = Object.keys(OPERATIONS) as OperationName[];
const NO_ROLE: string[] = [];

let servers: RestrictedServers;
beforeAll(async () => {
  Logger.overrideLogger(false);
  servers = await RestrictedServers.start();
});
afterAll(() => servers.stop());

/** Roles that may publish to a subject, for subjects that are neither operations nor inboxes. */
const OTHER_PUBLISHERS: Record<string, string[]> = {
  [eventSubject(POOL, 'round.completed')]: ['trainer-coordinator'],
  [workerCommandSubject(POOL, 'w', 'abort')]: ['trainer-coordinator'],
  [workerCommandSubject(POOL, 'w', 'move')]: ['trainer-coordinator'],
  [gatewaySubject(POOL, 'abort')]: ['gateway'],
  [logLevelSubject(POOL)]: ['admin-api'],
  [readinessSubject(POOL)]: ['admin-api'],
  [auditSubject(POOL, 'pool.configure')]: ['admin-api'],
  '$JS.API.INFO': ['trainer-coordinator', 'admin-api'],
  '$JS.API.STREAM.NAMES': ['trainer-coordinator'],
  [`$JS.API.STREAM.CREATE.${EVENTS_STREAM}`]: ['trainer-coordinator'],
  [`$JS.API.STREAM.UPDATE.${EVENTS_STREAM}`]: ['trainer-coordinator'],
  [`$JS.API.STREAM.CREATE.${AUDIT_STREAM}`]: ['admin-api'],
  [`$JS.API.CONSUMER.CREATE.${EVENTS_STREAM}.c`]: ['admin-api'],
  [`$JS.API.CONSUMER.CREATE.${AUDIT_STREAM}.c`]: ['admin-api'],
  [`$JS.API.STREAM.PURGE.${EVENTS_STREAM}`]: NO_ROLE,
  [`$JS.API.STREAM.DELETE.${EVENTS_STREAM}`]: NO_ROLE,
  [`$JS.API.STREAM.DELETE.${AUDIT_STREAM}`]: NO_ROLE,
  [`$JS.API.STREAM.MSG.GET.${AUDIT_STREAM}`]: ['admin-api'],
  [`$JS.API.STREAM.MSG.GET.${EVENTS_STREAM}`]: ['admin-api'],
  [`$JS.API.STREAM.SNAPSHOT.${AUDIT_STREAM}`]: NO_ROLE,
  [`$JS.API.STREAM.RESTORE.${AUDIT_STREAM}`]: NO_ROLE,
  '$SYS.REQ.SERVER.PING': NO_ROLE,
  'rollout.v2.p.lb.acquire': NO_ROLE,
};

const SERVICES = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'];
/** Roles that may subscribe to a subject with its queue group, for subjects that are neither operations nor inboxes. */
const SUBSCRIBERS: [subject: string, queue: string | undefined, roles: string[]][] = [
  ['>', undefined, NO_ROLE],
  ['rollout.v1.>', undefined, NO_ROLE],
  ['_INBOX.>', undefined, NO_ROLE],
  ['$JS.API.>', undefined, NO_ROLE],
  [`rollout.v1.${POOL}.>`, undefined, NO_ROLE],
  [auditSubject(POOL, '>'), undefined, NO_ROLE],
  [eventSubject(POOL, '>'), undefined, ['viewer']],
  [gatewaySubject(POOL, 'abort'), undefined, ['gateway']],
  [workerCommandSubject(POOL, 'w', 'abort'), undefined, ['worker']],
  [workerCommandSubject(POOL, 'w', 'abort'), 'worker', ['worker']],
  [workerCommandSubject(POOL, 'w', 'abort'), 'gateway', ['gateway']],
  [workerCommandSubject(POOL, 'w', 'move'), 'gateway', ['gateway']],
  [workerCommandSubject(POOL, 'w', 'move'), 'worker', ['worker']],
  [workerCommandSubject(POOL, 'w', 'move'), undefined, ['worker']],
  [logLevelSubject(POOL), undefined, SERVICES],
  [readinessSubject(POOL), undefined, SERVICES],
];

describe.each(ROLES)('NATS refuses to the user %s', (role) => {
  let connection: MessagingConnection;
  beforeAll(async () => {
    connection = await connectNats(servers.natsConfig(role));
  });
  afterAll(() => connection?.close());
  const { calls } = NATS_ROLES[role]!;

  it('operations that it does not call, other subjects, and inboxes of users that do not call it', async () => {
    const answers = (caller: string) =>
      NATS_ROLES[caller]!.calls.some((name) => OPERATIONS[name].owner === role) ||
      (caller.startsWith('admin') && /-|worker|gateway/.test(role));
    const mayPublish: [subject: string, may: boolean][] = [
      ...NAMES.map((name): [string, boolean] => [buildSubject(POOL, name), calls.includes(name)]),
      ...NAMES.map((name): [string, boolean] => [replicaSubject('r', POOL, name), calls.includes(name)]),
      ...Object.entries(OTHER_PUBLISHERS).map(([subject, roles]): [string, boolean] => [subject, roles.includes(role)]),
      ...Object.keys(NATS_ROLES).map((caller): [string, boolean] => [`_INBOX.${caller}.a.b`, answers(caller)]),
    ];
    const refused = new Set<string>();
    connection.refusals.onPublish((subject) => refused.add(subject));
    for (const [subject] of mayPublish) connection.nats.publish(subject, '{}');
    const expected = mayPublish.filter(([, may]) => !may).map(([subject]) => subject);
    await connection.nats.flush();
    await expect.poll(() => [...refused].sort()).toEqual(expected.sort());
  });

  it('the requests of others, their inboxes, and events that it does not need', async () => {
    const owned = (name: OperationName) => (OPERATIONS[name].owner === role ? [role] : NO_ROLE);
    const wanted: typeof SUBSCRIBERS = [
      ...SUBSCRIBERS,
      ...ROLES.map((other): (typeof SUBSCRIBERS)[0] => [`_INBOX.${other}.>`, undefined, [other]]),
      ...NAMES.map((name): (typeof SUBSCRIBERS)[0] => [buildSubject('*', name), OPERATIONS[name].owner, owned(name)]),
      ...NAMES.map((name): (typeof SUBSCRIBERS)[0] => [replicaSubject('r', '*', name), undefined, owned(name)]),
      // Without the queue group a user would read all requests, beside the service.
      ...NAMES.map((name): (typeof SUBSCRIBERS)[0] => [buildSubject('*', name), undefined, NO_ROLE]),
    ];
    const label = (subject: string, queue?: string) => `${subject} ${queue ?? ''}`;
    const refused: string[] = [];
    for (const [subject, queue] of wanted) {
      const callback = (error: Error | null) => error && refused.push(label(subject, queue));
      connection.nats.subscribe(subject, { queue, callback });
    }
    await connection.nats.flush();
    const expected = wanted.filter(([, , roles]) => !roles.includes(role));
    expect(refused.sort()).toEqual(expected.map(([subject, queue]) => label(subject, queue)).sort());
  });
});

const PYTHON = 'clients/python/src/broomwagon';
const ONLY_OF_TRAINERS = ['trainer.py', 'weights.py', '_job_rounds.py', '_job.py', '_plan.py', '_round.py'];
const OF_PYTHON_TRAINERS = [...ONLY_OF_TRAINERS, '_payloads.py'];
const OF_ALL_ROLES = ['protocol.py', '_call_ids.py'];
const OF_PYTHON_WORKERS = readdirSync(PYTHON).filter(
  (name) => name.endsWith('.py') && ![...ONLY_OF_TRAINERS, ...OF_ALL_ROLES].includes(name),
);

it.each([
  ['worker', ['apps/worker/src', 'libs/generation/src']],
  ['worker', OF_PYTHON_WORKERS.map((name) => join(PYTHON, name))],
  ['trainer', OF_PYTHON_TRAINERS.map((name) => join(PYTHON, name))],
  ['gateway', ['apps/gateway/src']],
  ['trainer', ['lab/reference-trainer/src', 'docs/protocol/examples']],
])('the user %s may call each operation that its code names', (role, paths) => {
  const files = paths.flatMap((path) =>
    path.endsWith('.py')
      ? path
      : readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name)),
  );
  const ofProduct = files.filter((file) => /(?<!spec|fixture|one-round|typed-client)\.(ts|mjs|py)$/.test(file));
  const texts = ofProduct.map((file) => readFileSync(file, 'utf8')).join('\n');
  const called = NAMES.filter((name) => texts.includes(`'${name}'`) || texts.includes(`"${name}"`));
  expect(called.length).toBeGreaterThan(10);
  expect(called.filter((name) => !NATS_ROLES[role]!.calls.includes(name))).toEqual([]);
});

describe('a program whose user lacks a permission', () => {
  it('gets FORBIDDEN at once for a request, with the subject and the user', async () => {
    const connection = await connectNats(servers.natsConfig('worker'));
    const subject = buildSubject(POOL, 'lb.decisions');
    const request = new MessagingClient(connection).request(subject, {}, { timeoutMs: 600_000 });
    await expect(request).rejects.toMatchObject({
      code: 'FORBIDDEN',
      retryable: false,
      message: expect.stringMatching(/the user worker publish to rollout\.v1\.p\.lb\.decisions/) as string,
    });
    await connection.close();
  });

  it('does not connect if it may not read replies, and names the setting', async () => {
    const config = { ...servers.natsConfig('worker'), inboxPrefix: '_INBOX.trainer', startDeadlineMs: 600_000 };
    await expect(connectNats(config)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('NATS_INBOX_PREFIX') as string,
    });
  });
});

it('the user admin of NATS copies a stream and restores it, as `nats stream backup` and `restore` do', async () => {
  const connection = await connectNats(servers.natsConfig('admin'));
  const { nats } = connection;
  const manager = await nats.jetstreamManager();
  const config = { name: 'COPIED', subjects: ['copied.>'] };
  await manager.streams.add(config);
  await nats.jetstream().publish('copied.one', 'first');
  const ask = async (subject: string, body: object | Uint8Array) => {
    const data = body instanceof Uint8Array ? body : JSON.stringify(body);
    const answer = await requestRaw(nats, subject, data);
    return answer.data.length > 0 ? answer.json<{ deliver_subject: string; error?: object }>() : undefined;
  };
  const chunks: Uint8Array[] = [];
  const inbox = '_INBOX.admin.copy';
  const copied = new Promise<void>((done) => {
    nats.subscribe(inbox, {
      callback: (_, message) => {
        message.respond();
        if (message.data.length === 0) done();
        else chunks.push(message.data);
      },
    });
  });
  expect(await ask('$JS.API.STREAM.SNAPSHOT.COPIED', { deliver_subject: inbox })).not.toHaveProperty('error');
  await copied;
  await manager.streams.delete('COPIED');

  const state = { messages: 1, bytes: 1, first_seq: 1, last_seq: 1, consumer_count: 0 };
  const { deliver_subject: target } = (await ask('$JS.API.STREAM.RESTORE.COPIED', { config, state }))!;
  for (const chunk of chunks) await ask(target, chunk);
  await ask(target, new Uint8Array());
  const restored = await manager.streams.getMessage('COPIED', { seq: 1 });
  expect(restored.string()).toBe('first');
  await manager.streams.delete('COPIED');
  await connection.close();
});

const READS = [['HGETALL', 'rollout:{p}:meta']];
const WRITES = [['HSET', 'rollout:{p}:settings', 'a', 'b']];
const LOADS = [['FUNCTION', 'LOAD', 'text']];
const DELETES = [['FUNCTION', 'DELETE', 'name']];
const READS_KEYS = [['HGETALL', 'rollout:credentials']];
const WRITES_KEYS = [['HSET', 'rollout:credentials', 'a', 'b']];
const WRITES_PAYLOADS = [
  ['FCALL', 'put', '1', 'rollout:payload:{p/j}'],
  ['HSET', 'rollout:payload:{p/j}:x', 'a', 'b'],
];
/** Commands of a client of a Cluster. */
const ASKS_CLUSTER = [['CLUSTER', 'SLOTS'], ['CLUSTER', 'INFO'], ['CLUSTER', 'KEYSLOT', 'key'], ['ASKING']];
/** Commands that no service may send. */
const DANGEROUS = [
  ['CLUSTER', 'FAILOVER'],
  ['CLUSTER', 'RESET'],
  ['CLUSTER', 'MEET', '127.0.0.1', '1'],
  ['FLUSHALL'],
  ['FLUSHDB'],
  ['KEYS', '*'],
  ['CONFIG', 'GET', '*'],
  ['CONFIG', 'SET', 'maxmemory', '0'],
  ['ACL', 'LIST'],
  ['FUNCTION', 'FLUSH'],
  ['FUNCTION', 'RESTORE', 'x'],
  ['SCRIPT', 'FLUSH'],
  ['SHUTDOWN'],
  ['DEBUG', 'SLEEP', '1'],
  ['MONITOR'],
  ['REPLICAOF', 'host', '1'],
  ['CLIENT', 'KILL', 'TYPE', 'normal'],
  ['MIGRATE', 'host', '1', 'rollout:{p}:meta', '0', '1'],
  ['GET', 'other:key'],
  ['SET', 'other:key', 'x'],
  ['FCALL', 'name', '1', 'other:{p}'],
  ['PUBLISH', 'channel', 'x'],
];

describe('Redis', () => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(servers.redisUrl('admin'));
  });
  afterAll(() => admin?.disconnect());
  const isAllowed = async (user: string, command: string[]) =>
    (await admin.call('ACL', 'DRYRUN', user, ...command)) === 'OK';

  it.each<[user: string, may: string[][], mayNot: string[][]]>([
    ['load-balancer', [...READS, ...WRITES, ...LOADS], DELETES],
    ['trainer-coordinator', [...READS, ...WRITES, ...LOADS, ...DELETES, ...WRITES_PAYLOADS], []],
    ['worker', WRITES_PAYLOADS, [...READS, ...WRITES, ...READS_KEYS, ...LOADS, ...DELETES]],
    ['gateway', [...READS, ...READS_KEYS, ...LOADS, ...WRITES_PAYLOADS], [...WRITES, ...WRITES_KEYS, ...DELETES]],
    ['admin-api', [...READS, ...WRITES_KEYS, ...LOADS], [...WRITES, ...WRITES_PAYLOADS.slice(1), ...DELETES]],
    ['auditor', READS, [...WRITES, ...WRITES_KEYS, ...WRITES_PAYLOADS.slice(1), ...LOADS, ...DELETES]],
  ])('lets %s do what it needs and nothing else', async (user, may, mayNot) => {
    for (const command of [...may, ...ASKS_CLUSTER])
      expect([command, await isAllowed(user, command)]).toEqual([command, true]);
    for (const command of [...mayNot, ...DANGEROUS]) {
      expect([command, await isAllowed(user, command)]).toEqual([command, false]);
    }
    const client = new Redis(servers.redisUrl(user));
    await expect(client.flushall()).rejects.toThrow('NOPERM');
    client.disconnect();
  });

  it('lets the exporter of metrics read no key and no setting', async () => {
    const may = [
      ['INFO', 'ALL'],
      ['LATENCY', 'LATEST'],
      ['SLOWLOG', 'LEN'],
      ['CLIENT', 'SETNAME', 'a'],
      ['CLUSTER', 'INFO'],
    ];
    for (const command of may) expect([command, await isAllowed('exporter', command)]).toEqual([command, true]);
    for (const command of [...READS, ...READS_KEYS, ...WRITES, ...LOADS, ...DANGEROUS, ['SLOWLOG', 'GET']]) {
      expect([command, await isAllowed('exporter', command)]).toEqual([command, false]);
    }
  });

  it('drops nothing when Redis loads its append-only file, which it does as a user that nobody can be', async () => {
    const user = (await admin.call('ACL', 'GETUSER', 'default')) as unknown[];
    expect(user[user.indexOf('flags') + 1]).toContain('off');
    for (const [name, ...rest] of [...WRITES, ...DELETES]) {
      expect([name, await isAllowed('default', [name!, ...rest])]).toEqual([name, true]);
    }
  });

  it('lets nobody in without a password', async () => {
    const client = new Redis(servers.redis.port, { retryStrategy: () => null });
    client.on('error', () => undefined);
    await expect(client.get('rollout:credentials')).rejects.toThrow('NOAUTH');
    client.disconnect();
  });

  it('takes the old and the new password of a user while it is changed, and afterwards only the new one', async () => {
    const logIn = async (password: string) => {
      const { port } = servers.redis;
      const client = new Redis({ port, username: 'worker', password, retryStrategy: () => null });
      let refusal = '';
      client.on('error', (error: Error) => (refusal = error.message));
      const answer = await client.ping().catch(() => refusal);
      client.disconnect();
      return answer;
    };
    const { password: old } = new URL(servers.redisUrl('worker'));
    await admin.call('ACL', 'SETUSER', 'worker', '>new');
    expect([await logIn(old), await logIn('new')]).toEqual(['PONG', 'PONG']);
    await admin.call('ACL', 'SETUSER', 'worker', `<${old}`);
    expect([await logIn(old), await logIn('new')]).toEqual([expect.stringContaining('WRONGPASS'), 'PONG']);
  });
});

it('NATS takes a second user of a role while its password is changed, without a break', async () => {
  const second = { ...servers.natsConfig('worker'), user: 'worker-2', password: 'new' };
  const old = await connectNats(servers.natsConfig('worker'));
  let reconnects = 0;
  old.onReconnect = () => (reconnects += 1);
  const line = '{ user: worker, password: $NATS_WORKER_PASSWORD, permissions: $worker_permissions }';
  const added = '{ user: worker-2, password: new, permissions: $worker_permissions }';
  await servers.changeNats((configuration) => configuration.replace(line, `${line}\n${added}`));
  const connectSecond = () => connectNats({ ...second, startDeadlineMs: 0 }).catch((error: Error) => error.message);
  await expect
    .poll(async () => {
      const made = await connectSecond();
      if (typeof made === 'string') return made;
      await made.close();
      return 'connected';
    })
    .toBe('connected');
  await old.nats.flush();
  expect(reconnects).toBe(0);
  const next = await connectNats(second);
  await servers.changeNats((configuration) => configuration.replace(line, ''));
  await expect.poll(() => old.isConnected()).toBe(false);
  await next.nats.flush();
  expect(next.isConnected()).toBe(true);
  await Promise.all([old.close(), next.close()]);
});
