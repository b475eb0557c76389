import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fakeTools } from './fake-tools';
import { cacheFolder, privateCopies } from './private-copy';

/**
 * A distribution in four scripts: apt-get downloads empty files named as packages, dpkg-deb unpacks a Redis that prints
 * its version if its library is there, and all calls of the scripts are written to calls.log.
 */
const dpkg = 'echo testarch';
const aptCache = `shift 2; case "$2" in redis-server) echo "  Candidate: $CANDIDATE";; *) echo "  Candidate: (none)";; esac`;
const aptGet = `
[ "$1" = --version ] && exit 0
shift 2; [ "$1" = -qq ] && shift
echo "$*" >> "$CALLS"
case "$1" in
  -s) [ "$RESOLVER" = broken ] && exit 100
      echo 'Inst libfast2 (1 x)'; echo 'Inst libc6 [1] (2 x)'; echo 'Inst redis-server (7 x)';;
  download) shift; for name in "$@"; do
      case "$name" in liblua*|lua-*|libatomic1|libhiredis*) exit 100;; esac; : > "$name.deb"; done;;
esac`;
const dpkgDeb = `
case "$2" in
  */redis-tools.deb) mkdir -p "$3/usr/bin"
    { echo '#!/bin/sh'; echo 'echo "$LD_LIBRARY_PATH" | grep -q usr/lib/fast || { echo "no libfast" >&2; exit 127; }'
      echo "echo 'Redis server v=$RUNS sha=0'"; } > "$3/usr/bin/redis-real"; chmod +x "$3/usr/bin/redis-real";;
  */redis-server.deb) mkdir -p "$3/usr/bin"; ln -s redis-real "$3/usr/bin/redis-server";;
  */lib*.deb) mkdir -p "$3/usr/lib/fast"; : > "$3/usr/lib/fast/libfast.so.2";;
esac`;

let folder: string;
let restorePath: () => void;
const say = () => undefined;
const setEnvironment = (values: Record<string, string>) => Object.assign(process.env, values);
const calls = () => readFile(join(folder, 'calls.log'), 'utf8').catch(() => '');

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broomwagon-copy-spec-'));
  const scripts = { dpkg, 'apt-get': aptGet, 'apt-cache': aptCache, 'dpkg-deb': dpkgDeb };
  restorePath = await fakeTools(join(folder, 'bin'), scripts);
  setEnvironment({ CALLS: join(folder, 'calls.log'), CANDIDATE: '5:7.0.15-1', RUNS: '7.0.15', RESOLVER: 'fine' });
});
afterEach(async () => {
  restorePath();
  for (const name of ['CALLS', 'CANDIDATE', 'RUNS', 'RESOLVER']) delete process.env[name];
  await rm(folder, { recursive: true, force: true });
});

const copyRedis = async () => (await privateCopies(['redis'], say, join(folder, 'cache'))).get('redis')!;

describe('privateCopies', () => {
  it('downloads the packages and the libraries the system lacks, and runs them from the cache', async () => {
    const copy = await copyRedis();
    expect(copy).toMatchObject({
      version: '7.0.15',
      path: expect.stringMatching(
        /cache\/servers\/.+-testarch\/redis\/5_7\.0\.15-1\/usr\/bin\/redis-server$/,
      ) as string,
      environment: { LD_LIBRARY_PATH: expect.stringContaining('/usr/lib/fast') as string },
    });
    expect(await calls()).toBe(
      [
        'update',
        'download redis-server redis-tools',
        '-s --no-install-recommends install redis-server redis-tools',
        'download libfast2',
        '',
      ].join('\n'),
    );
  });

  it('uses an existing copy without asking apt again, and leaves no other file in the cache', async () => {
    const first = await copyRedis();
    const callsOfFirst = await calls();
    expect(await copyRedis()).toEqual(first);
    expect(await calls()).toBe(callsOfFirst);
    const [release] = await readdir(join(folder, 'cache', 'servers'));
    expect(await readdir(join(folder, 'cache', 'servers', release!))).toEqual(['redis']);
  });

  it('lets parallel first runs end with the same copy', async () => {
    const copies = await Promise.all([copyRedis(), copyRedis(), copyRedis()]);
    expect(new Set(copies.map((copy) => ('path' in copy ? copy.path : copy.reason))).size).toBe(1);
    expect(copies[0]).toHaveProperty('version', '7.0.15');
  });

  it('replaces a damaged copy', async () => {
    const first = await copyRedis();
    if (!('path' in first)) throw new Error(first.reason);
    await writeFile(first.path, '#!/bin/sh\nexit 1\n');
    expect(await copyRedis()).toEqual(first);
  });

  it('tries the known libraries one by one when the resolver refuses', async () => {
    setEnvironment({ RESOLVER: 'broken' });
    expect(await copyRedis()).toHaveProperty('version', '7.0.15');
    expect(await calls()).toContain('download libjemalloc2\ndownload liblzf1\ndownload liblua5.1-0\n');
  });

  it('reports why there is no copy', async () => {
    setEnvironment({ RUNS: '6.0.16' });
    expect(await copyRedis()).toMatchObject({
      reason: expect.stringMatching(/version 6\.0\.16, at least 7\.0/) as string,
    });
    setEnvironment({ CANDIDATE: '(none)' });
    expect(await copyRedis()).toEqual({
      reason: 'this distribution has no package redis-server or valkey-server',
    });
    await mkdir(join(folder, 'file'));
    await writeFile(join(folder, 'file', 'x'), '');
    const unusable = await privateCopies(['redis'], say, join(folder, 'file', 'x'));
    expect(unusable.get('redis')).toMatchObject({ reason: expect.stringMatching(/cache folder.*ENOTDIR/) as string });
  });
});

describe('cacheFolder', () => {
  it('is BROOMWAGON_CACHE, else of XDG_CACHE_HOME, else of the home folder', () => {
    expect(cacheFolder({ BROOMWAGON_CACHE: '/a', XDG_CACHE_HOME: '/b' })).toBe('/a');
    expect(cacheFolder({ XDG_CACHE_HOME: '/b' })).toBe('/b/broomwagon');
    expect(cacheFolder({ BROOMWAGON_CACHE: 'cache', INIT_CWD: '/called/in' })).toBe('/called/in/cache');
    expect(cacheFolder({})).toMatch(/\/\.cache\/broomwagon$/);
  });
});
