import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { flushPrefix, ProcessGroup, readyByFile, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';

const APPS = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'];

let folder: string;
let files: string[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-image-'));
  execFileSync(process.execPath, ['scripts/image-files.mjs', folder]);
  files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
});
afterAll(() => rmSync(folder, { recursive: true }));

it('has neither tests, nor files that only tests use, nor lab', () => {
  expect(files.filter((file) => /\.(spec|fixture)\.|\/testing(\/|$)|^dist\/lab|\.ts$/.test(file))).toEqual([]);
});

it('has each program that docker-compose.yml starts, the audit, the commands of operators and the console', () => {
  const { services } = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }) as {
    services: Record<string, { image: string; command: string[] }>;
  };
  const started = Object.values(services).flatMap(({ image, command }) =>
    image === 'broomwagon' && command[0] === 'node' ? command[1]! : [],
  );
  expect(started).toHaveLength(APPS.length + 1);
  const more = ['dist/apps/cli/src/main.js', 'dist/apps/load-balancer/src/audit.cli.js', 'dist/console/index.html'];
  expect([...started, ...more].filter((file) => !files.includes(file))).toEqual([]);
});

it('imports no package that is not installed for production', () => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object };
  const used = files
    .filter((file) => /\.m?js$/.test(file) && !file.startsWith('dist/console'))
    .flatMap((file) => [
      ...readFileSync(join(folder, file), 'utf8').matchAll(
        /\b(?:require|import)\(["']((?:@[^/"']+\/)?[^./"'][^/"']*)/g,
      ),
    ])
    .map(([, name]) => name!);
  const packages = new Set(used.filter((name) => !name.startsWith('node:') && !builtinModules.includes(name)));
  expect(packages.size).toBeGreaterThan(20);
  expect([...packages].filter((name) => !(name in dependencies))).toEqual([]);
});

it('starts each service from these files', async () => {
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  const { pool, keyPrefix } = testPool();
  const prefix = keyPrefix.slice(0, -1);
  const group = new ProcessGroup({ logFolder: join(folder, 'logs'), distFolder: join(folder, 'dist') });
  const environment = {
    NATS_URL: testNatsUrl(),
    REDIS_URL: testRedisUrl(),
    REDIS_KEY_PREFIX: prefix,
    POOL: pool,
    POOLS: pool,
  };
  try {
    await Promise.all(
      APPS.map((app) => {
        const found = readyByFile(join(folder, `${app}.json`));
        const settings = { ...environment, ...found.environment };
        return group.start({ name: app, app, ...found, environment: settings, readyTimeoutMs: 120_000 });
      }),
    );
    expect(group.list().every(({ running }) => running)).toBe(true);
  } finally {
    await group.stopAll(5_000);
    await flushPrefix(testRedisUrl(), keyPrefix);
  }
}, 150_000);
