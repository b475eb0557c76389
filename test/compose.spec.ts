import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const compose = readFileSync('docker-compose.yml', 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-compose-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('publishes nothing beyond the loopback address', () => {
  const published = [...compose.matchAll(/^ *ports: (.*)$/gm)].map(([, ports]) => ports);
  expect(published).toHaveLength(6);
  for (const ports of published) expect(ports).toMatch(/^\['127\.0\.0\.1:[^',]+'\]$/);
});

it('starts neither NATS nor Redis without a password, and holds none itself', () => {
  expect(compose).toMatch(/authorization \{.*password: "\$\{NATS_PASSWORD:\?/);
  expect(compose).toMatch(/requirepass \$\{REDIS_PASSWORD:\?/);
  for (const [command] of compose.matchAll(/^ *command:[^:]*/gm)) expect(command).not.toContain('PASSWORD');
  const uses = [...compose.matchAll(/\$\{\w+_PASSWORD[^}]*\}/g)].map(([use]) => use);
  expect(uses.length).toBeGreaterThan(3);
  for (const use of uses) expect(use).toMatch(/:\?run node scripts\/credentials\.mjs first\}$/);
});

it('starts Prometheus and Grafana only when asked, with the rules and the dashboard, and without a login that changes', () => {
  for (const name of ['prometheus', 'grafana']) {
    const service = new RegExp(`^  ${name}:\\n((?:(?:    .*)?\\n)+)`, 'm').exec(compose)![1]!;
    expect(service).toContain('profiles: [monitoring]');
    const mounted = [...service.matchAll(/(\.\/deploy\/[^:]+):[^:]+:ro/g)].map(([, path]) => path!);
    expect(mounted.filter((path) => !existsSync(path))).toEqual([]);
    expect(mounted.length).toBeGreaterThan(0);
  }
  expect(compose).toContain("GF_AUTH_BASIC_ENABLED: 'false'");
  expect(compose).toContain('GF_AUTH_ANONYMOUS_ORG_ROLE: Viewer');
});

it('has its passwords made by a script that keeps what is there, in a file that is never committed', () => {
  const make = () => spawnSync(process.execPath, ['scripts/credentials.mjs', folder], { encoding: 'utf8' });
  const file = join(folder, '.env');
  expect(make().status).toBe(0);
  const made = readFileSync(file, 'utf8');
  expect(made).toMatch(/^NATS_PASSWORD=[0-9a-f]{48}\nREDIS_PASSWORD=[0-9a-f]{48}\n$/);
  expect(new Set(made.match(/[0-9a-f]{48}/g)).size).toBe(2);
  expect(statSync(file).mode & 0o077).toBe(0);
  expect(make().stdout).toContain('already');
  expect(readFileSync(file, 'utf8')).toBe(made);
  expect(readFileSync('.gitignore', 'utf8')).toMatch(/^\.env$/m);
});
