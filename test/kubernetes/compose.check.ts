import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';

interface Project {
  services: Record<
    string,
    { image: string; read_only?: boolean; cap_drop?: string[]; environment?: Record<string, string> }
  >;
}

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-compose-'));
beforeAll(async () => void (await run(process.execPath, ['scripts/credentials.mjs', folder])));
afterAll(() => rmSync(folder, { recursive: true }));

async function load(profiles: string, environment: Record<string, string> = {}): Promise<Project> {
  const env = { ...process.env, CREDENTIALS: folder, COMPOSE_PROFILES: profiles, ...environment };
  const { stdout } = await run(join(inject('programs'), 'compose'), ['docker-compose.yml'], { env });
  return JSON.parse(stdout) as Project;
}

const ALWAYS = ['admin-api', 'console', 'gateway', 'load-balancer', 'nats', 'redis', 'trainer-coordinator', 'worker'];
/** Services that are no users of NATS and Redis of their own. */
const WITHOUT_USER = new Set(['console', 'nats', 'redis']);

it.each([
  ['', []],
  ['engines', ['engines']],
  ['monitoring', ['grafana', 'prometheus']],
  ['trainer', ['engines', 'trainer']],
  ['cluster', [...[1, 2, 3].map((n) => `nats-${n}`), ...[1, 2, 3, 4, 5, 6].map((n) => `redis-${n}`), 'redis-cluster']],
])('is a valid project with the profile "%s"', async (profile, more) => {
  const { services } = await load(profile);
  expect(Object.keys(services).toSorted()).toEqual([...ALWAYS, ...more].toSorted());
  for (const [name, { image, read_only, cap_drop }] of Object.entries(services)) {
    const isMonitoring = name === 'grafana' || name === 'prometheus';
    expect({ read_only, cap_drop }, name).toEqual({ read_only: isMonitoring ? undefined : true, cap_drop: ['ALL'] });
    if (!image.startsWith('broomwagon')) expect(image, name).toMatch(/:v?\d+\.\d+\.\d+/);
  }
});

it('gives each service its own user, and the passwords of all only to the servers', async () => {
  const { services } = await load('cluster,engines,monitoring,trainer');
  for (const name of [...ALWAYS, 'trainer'].filter((one) => !WITHOUT_USER.has(one))) {
    const { NATS_USER, NATS_INBOX_PREFIX, REDIS_URL } = services[name]!.environment!;
    expect({ NATS_USER, NATS_INBOX_PREFIX }).toEqual({ NATS_USER: name, NATS_INBOX_PREFIX: `_INBOX.${name}` });
    if (name !== 'trainer') expect(REDIS_URL).toMatch(new RegExp(`^redis://${name}:\\w+@redis:6379$`));
  }
  const knowAll = Object.keys(services).filter((name) => services[name]!.environment?.['REDIS_ADMIN_PASSWORD']);
  expect(knowAll.every((name) => /^(nats|redis)/.test(name))).toBe(true);
});

it('points the services to other servers by three variables', async () => {
  const { services } = await load('cluster', {
    APP_NATS_URL: 'nats://nats-1:4222,nats-2:4222',
    APP_REDIS_SCHEME: 'redis+cluster',
    APP_REDIS_HOSTS: 'redis-1:6379,redis-2:6379',
  });
  expect(services['worker']!.environment).toMatchObject({
    NATS_URL: 'nats://nats-1:4222,nats-2:4222',
    REDIS_URL: expect.stringMatching(/^redis\+cluster:\/\/worker:\w+@redis-1:6379,redis-2:6379$/) as string,
  });
});
