import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CredentialStore } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Service {
  image: string;
  command?: string | string[];
  env_file?: string[];
}

const compose = readFileSync('docker-compose.yml', 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-compose-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('publishes nothing beyond the loopback address', () => {
  const published = [...compose.matchAll(/^ *ports: (.*)$/gm)].map(([, ports]) => ports);
  expect(published).toHaveLength(6);
  for (const ports of published) expect(ports).toMatch(/^\['127\.0\.0\.1:[^',]+'\]$/);
});

it('gives each service its own user, and no password on a command line or in the file itself', () => {
  const { services } = parse(compose, { merge: true }) as { services: Record<string, Service> };
  const roles = Object.entries(services).filter(([, { image }]) => image === 'broomwagon');
  expect(roles.map(([name]) => name)).toHaveLength(7);
  for (const [name, service] of roles) {
    const user = name === 'console' ? 'admin-api' : name;
    expect(service.env_file).toEqual([`\${CREDENTIALS:-.credentials}/${user}.env`]);
  }
  for (const name of ['nats', 'redis', 'nats-1', 'redis-1']) {
    expect(services[name]!.env_file).toEqual(['${CREDENTIALS:-.credentials}/passwords.env']);
  }
  // `$$` is a variable inside of the container.
  for (const { command } of Object.values(services))
    expect(JSON.stringify(command) ?? '').not.toMatch(/(?<!\$)\$\{?\w*PASSWORD/);
  expect(compose).not.toMatch(/PASSWORD: |requirepass|authorization/);
});

it('ends its start with the address of the console and a token that expires', async () => {
  const { services } = parse(compose, { merge: true }) as { services: Record<string, Service> };
  const [shell, option, script] = services['console']!.command as string[];
  const text = script!.replaceAll(/\$\{\w+:-(.*?)\}/g, '$1').replaceAll('$$', '$');
  const { keyPrefix } = testPool();
  const env = { PATH: process.env['PATH'], REDIS_URL: testRedisUrl(), REDIS_KEY_PREFIX: keyPrefix.slice(0, -1) };
  const { stdout, stderr } = await promisify(execFile)(shell!, [option!, text], { env });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^Console: http:\/\/127\.0\.0\.1:8080 Token, valid for a day: \S{20,}\n$/);
  const redis = new Redis(testRedisUrl());
  const [token] = await new CredentialStore(redis, keyPrefix.slice(0, -1)).list();
  expect(token).toMatchObject({ name: 'console', role: 'admin' });
  expect(token!.expiresAtMs! - Date.now()).toBeLessThanOrEqual(86_400_000);
  redis.disconnect();
  await flushPrefix(testRedisUrl(), keyPrefix);
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

it('gets its passwords from a script that keeps existing ones, in files that are never committed', () => {
  const make = () => spawnSync(process.execPath, ['scripts/credentials.mjs', folder], { encoding: 'utf8' });
  const texts = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]);
  expect(make().status).toBe(0);
  const made = Object.fromEntries(texts()) as Record<string, string>;
  const passwords = [...made['passwords.env']!.matchAll(/^(NATS|REDIS)_[A-Z_]+_PASSWORD=p[0-9a-f]{48}$/gm)];
  const lines = made['passwords.env']!.trim().split('\n');
  expect(passwords).toHaveLength(lines.length);
  expect(new Set(lines.map((line) => line.split('=')[1])).size).toBe(lines.length);
  for (const name of Object.keys(made)) expect(statSync(join(folder, name)).mode & 0o077).toBe(0);
  expect(make().stdout).toMatch(/^0 new passwords, /);
  expect(Object.fromEntries(texts())).toEqual(made);

  // A newer version may have a new user, whose password is missing in the file.
  const passwordsFile = join(folder, 'passwords.env');
  chmodSync(passwordsFile, 0o644);
  writeFileSync(passwordsFile, made['passwords.env']!.replace(/^NATS_WORKER.*\n/m, ''));
  expect(make().stdout).toMatch(/^1 new passwords, /);
  expect(statSync(passwordsFile).mode & 0o077).toBe(0);
  const password = /^NATS_WORKER_PASSWORD=(\w+)$/m.exec(readFileSync(join(folder, 'passwords.env'), 'utf8'))![1]!;
  expect(made['passwords.env']).not.toContain(password);
  expect(readFileSync(join(folder, 'worker.env'), 'utf8')).toContain(`NATS_PASSWORD=${password}\n`);
  // If the operator wrote a password that the servers would not read, it is not replaced in silence.
  const own = made['passwords.env']!.replace(/^NATS_WORKER.*$/m, 'NATS_WORKER_PASSWORD=my-own');
  writeFileSync(passwordsFile, own);
  expect(make()).toMatchObject({ status: 2, stderr: expect.stringMatching(/^error: line \d+ of /) as string });
  expect(make().stderr).not.toContain('my-own');
  expect(readFileSync(passwordsFile, 'utf8')).toBe(own);
  for (const file of ['.gitignore', '.dockerignore']) {
    expect(readFileSync(file, 'utf8')).toMatch(/^\.credentials\/?$/m);
  }
});
