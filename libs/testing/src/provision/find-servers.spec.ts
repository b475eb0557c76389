import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startRedis } from '../servers/redis-server';
import { fakeTools } from './fake-tools';
import { findServers } from './find-servers';
import { installAdvice } from './install-advice';

let folder: string;
let restorePath: () => void = () => undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broomwagon-find-spec-'));
});
afterEach(async () => {
  restorePath();
  await rm(folder, { recursive: true, force: true });
});

const withTools = async (scripts: Record<string, string>) => {
  restorePath = await fakeTools(join(folder, 'bin'), scripts);
};

describe('findServers', () => {
  it('takes executables on PATH before other sources', async () => {
    await withTools({
      'nats-server': 'echo "nats-server: v2.11.3"',
      'redis-server': 'echo "Redis server v=7.2.4 sha=00000000:0"',
    });
    const found = await findServers(['nats', 'redis']);
    expect(found.get('nats')).toMatchObject({ source: 'path', description: /nats-server \(version 2.11.3\)/ as never });
    expect(found.get('redis')).toMatchObject({ source: 'path', binary: { version: '7.2.4' } });
  });

  it('passes over a Redis that is too old for a Valkey that is not', async () => {
    await withTools({
      'redis-server': 'echo "Redis server v=6.0.16 sha=00000000:0"',
      'valkey-server': 'echo "Valkey server v=8.1.1 sha=00000000:0"',
    });
    const found = await findServers(['redis'], { pathVariable: join(folder, 'bin') });
    expect(found.get('redis')!.description).toMatch(/valkey-server \(version 8.1.1\)/);
  });

  it('gives the reasons and the exact command when there is no way', async () => {
    await withTools({ 'redis-server': 'echo "error while loading shared libraries" >&2; exit 127', docker: 'exit 1' });
    const options = { sources: ['path', 'docker'] as const, pathVariable: join(folder, 'bin') };
    await expect(findServers(['redis'], options)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/^No Redis found.*REDIS_URL[^]*shared libraries[^]*no Docker daemon/) as string,
    });
  });
});

describe('Docker as the last way', () => {
  it('brings up the service in a project of its own and takes it down again', async () => {
    // The "container" is a Redis that gets the password of the user; calls of docker are written down.
    const container = await startRedis();
    const [log, passwords] = [join(folder, 'docker.log'), join(folder, 'passwords')];
    const copy = `cp $CREDENTIALS/passwords.env ${passwords}.new; mv ${passwords}.new ${passwords}`;
    const cases = `*" up "*) ${copy};; *" port "*) echo 0.0.0.0:${container.port};;`;
    await withTools({ docker: `echo "$REDIS_HOST_PORT $*" >> ${log}; case "$*" in ${cases} esac` });
    const composeFile = join(folder, 'docker-compose.yml');
    await writeFile(composeFile, '');
    const starting = startRedis({ sources: ['docker'], composeFile, readyTimeoutMs: 60_000 });
    const read = () => readFile(passwords, 'utf8').catch(() => '');
    await expect.poll(read).toMatch(/^REDIS_ADMIN_PASSWORD=\w+$/m);
    const password = /^REDIS_ADMIN_PASSWORD=(\w+)$/m.exec(await read())![1]!;
    const redis = new Redis(container.url);
    await redis.call('ACL', 'SETUSER', 'admin', 'on', `>${password}`, '+@all');
    redis.disconnect();
    const server = await starting;
    expect(server).toMatchObject({ source: 'docker', port: container.port, pid: undefined });
    expect(server.url).toBe(`redis://admin:${password}@127.0.0.1:${container.port}`);
    expect(server.getSettings('worker')['REDIS_URL']).toMatch(/^redis:\/\/worker:\w+@127\.0\.0\.1:\d+$/);
    await server.kill();
    await server.restart();
    await server.stop();
    const asked = (await readFile(log, 'utf8')).trim().split('\n');
    const ours = asked.filter((line) => line.includes('--project-name'));
    expect(
      ours.every((line) => /^\d+ compose --file \S+ --project-name broomwagon-redis-[0-9a-f]{8} /.test(line)),
    ).toBe(true);
    expect(ours.map((line) => line.split(/broomwagon-redis-\w+ /)[1])).toEqual([
      'up -d --no-deps redis',
      'port redis 6379',
      'kill --signal SIGKILL redis',
      'restart --timeout 5 redis',
      'down --volumes --timeout 5',
    ]);
    await container.stop();
  });

  it('refuses options that a container cannot take', async () => {
    await withTools({ docker: 'true' });
    const options = { sources: ['docker'] as const, composeFile: join(folder, 'docker-compose.yml'), password: 'x' };
    await expect(startRedis(options)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});

describe('installAdvice', () => {
  const both = ['nats', 'redis'] as const;
  it.each([
    ['darwin', 'brew', 'Run: brew install nats-server redis '],
    ['darwin', '', 'Run: brew install nats-server redis '],
    ['linux', 'apt-get', 'Run: sudo apt-get install nats-server redis-server '],
    ['linux', 'dnf', 'Run: sudo dnf install valkey && curl -sf https://binaries.nats.dev/'],
    ['linux', 'pacman', 'Run: sudo pacman -S nats-server valkey '],
    ['linux', 'apk', 'Run: sudo apk add nats-server redis '],
    ['linux', '', 'Install nats-server and redis-server or valkey-server '],
    ['win32', '', 'Windows has no such servers: run this in WSL'],
  ] as const)('on %s with "%s" begins: %s', (platform, tool, start) => {
    const advice = installAdvice(both, platform, (asked) => asked === tool);
    expect(advice.startsWith(start)).toBe(true);
    expect(advice).toContain('NATS_URL and REDIS_URL');
  });

  it('names only missing packages', () => {
    const advice = installAdvice(['redis'], 'linux', (tool) => tool === 'apt-get');
    expect(advice).toContain('apt-get install redis-server ');
    expect(advice).not.toMatch(/nats/i);
  });
});
