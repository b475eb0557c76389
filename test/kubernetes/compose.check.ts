import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';

interface Project {
  services: Record<string, { image: string; read_only?: boolean; cap_drop?: string[]; environment?: object }>;
}

async function load(profiles: string, environment: Record<string, string> = {}): Promise<Project> {
  const env = { ...process.env, NATS_PASSWORD: 'n', REDIS_PASSWORD: 'r', COMPOSE_PROFILES: profiles, ...environment };
  const program = join(inject('programs'), 'compose');
  const { stdout } = await promisify(execFile)(program, ['docker-compose.yml'], { env });
  return JSON.parse(stdout) as Project;
}

const ALWAYS = ['admin-api', 'gateway', 'load-balancer', 'nats', 'redis', 'trainer-coordinator', 'worker'];

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
    if (image.startsWith('broomwagon'))
      expect({ read_only, cap_drop }, name).toEqual({ read_only: true, cap_drop: ['ALL'] });
    else expect(image, name).toMatch(/:v?\d+\.\d+\.\d+/);
  }
});

it('points the services to other servers by two variables', async () => {
  const [APP_NATS_URL, APP_REDIS_URL] = ['nats://nats-1:4222', 'redis+cluster://:r@redis-1:6379'];
  const { services } = await load('cluster', { APP_NATS_URL, APP_REDIS_URL });
  expect(services['worker']!.environment).toMatchObject({ NATS_URL: APP_NATS_URL, REDIS_URL: APP_REDIS_URL });
});
