import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transformFile } from '@swc/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port';
import { ProcessGroup } from './process-group';

let folder: string;
let group: ProcessGroup;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broomwagon-group-spec-'));
  group = new ProcessGroup({ logFolder: folder, distFolder: folder });
});
afterEach(async () => {
  await group.stopAll(0);
  await rm(folder, { recursive: true, force: true });
});

const script = (code: string): [string, ...string[]] => [process.execPath, '-e', code];
/** Prints `up`, then stays until a signal. */
const STAY = 'setInterval(() => {}, 1e6); console.log("up");';
const SERVER = `
  let ready = false;
  require('node:http').createServer((request, answer) => {
    answer.statusCode = request.url === '/readyz' && ready ? 200 : 503;
    if (request.url === '/get-ready') ready = true;
    answer.end(process.env.GREETING);
  }).listen(Number(process.env.PORT), '127.0.0.1');`;

const logHas = (name: string, text: string) =>
  expect.poll(() => readFile(join(folder, `${name}.log`), 'utf8')).toContain(text);
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('ProcessGroup', () => {
  it('waits for /readyz to answer 200, with the environment given', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    let isReady = false;
    const starting = group.start({
      name: 'server',
      command: script(SERVER),
      environment: { PORT: String(port), GREETING: 'hello' },
      ready: `${url}/readyz`,
    });
    void starting.then(() => (isReady = true));
    const answer = await vi.waitFor(() => fetch(url), 30_000);
    expect(await answer.text()).toBe('hello');
    expect(isReady).toBe(false);
    await fetch(`${url}/get-ready`);
    expect((await starting).running).toBe(true);
  });

  it('runs an application of the dist folder by its name', async () => {
    await mkdir(join(folder, 'apps/worker/src'), { recursive: true });
    await writeFile(join(folder, 'apps/worker/src/main.js'), 'console.log("I am the worker"); process.exitCode = 3;');
    const worker = await group.start({ name: 'worker-1', app: 'worker' });
    expect(await worker.exited).toEqual({ code: 3, signal: null });
    expect(await worker.logTail(1)).toBe('I am the worker');
  });

  it('reports how a process ended before it was ready, with the end of its log', async () => {
    const command = script('console.error("no such setting: FOO"); process.exitCode = 7;');
    await expect(group.start({ name: 'bad', command, ready: 'http://127.0.0.1:9/readyz' })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'bad ended before it was ready (exit code 7). Its log ends:\nno such setting: FOO',
    });
  });

  it('ends a process that is not ready within its deadline', async () => {
    const slow = group.start({ name: 'slow', command: script(STAY), ready: async () => false, readyTimeoutMs: 100 });
    await expect(slow).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(group.get('slow').running).toBe(false);
  });

  it('reports a program that does not exist, and a name that is taken', async () => {
    await expect(group.start({ name: 'none', command: ['/no/such/program'] })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('ENOENT') as string,
    });
    await group.start({ name: 'one', command: script(STAY) });
    await expect(group.start({ name: 'one', command: script(STAY) })).rejects.toMatchObject({ code: 'INTERNAL' });
  });

  it('kills, restarts, stops and continues', async () => {
    const one = await group.start({ name: 'one', command: script(STAY) });
    const firstPid = one.pid!;
    one.kill('SIGKILL');
    expect(await one.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(one.kill()).toBe(false);
    await one.restart();
    expect(one.pid).not.toBe(firstPid);
    expect(one.lastExit).toBeUndefined();

    one.pause();
    const state = async () => /State:\s+(\w)/.exec(await readFile(`/proc/${one.pid}/status`, 'utf8'))?.[1];
    if (process.platform === 'linux') await expect.poll(state).toBe('T');
    one.resume();
    if (process.platform === 'linux') await expect.poll(state).not.toBe('T');
    one.pause();
    expect(await one.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('stops all together: politely first, then with SIGKILL, and reports each exit', async () => {
    const polite = `process.on('SIGTERM', () => { console.log('bye'); process.exit(0); }); ${STAY}`;
    await group.start({ name: 'polite', command: script(polite) });
    await group.start({ name: 'stubborn', command: script(`process.on('SIGTERM', () => {}); ${STAY}`) });
    await group.start({ name: 'gone', command: script('process.exitCode = 2') });
    await Promise.all([logHas('polite', 'up'), logHas('stubborn', 'up'), group.get('gone').exited]);
    const exits = await group.stopAll(3_000);
    expect(Object.fromEntries(exits)).toEqual({
      polite: { code: 0, signal: null },
      stubborn: { code: null, signal: 'SIGKILL' },
      gone: { code: 2, signal: null },
    });
    await logHas('polite', 'bye');
  });

  it('leaves no descendant of a process behind', async () => {
    const grandchild = `const { pid } = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(STAY)}]);
      console.log('pid=' + pid); ${STAY}`;
    const parent = await group.start({ name: 'parent', command: script(grandchild) });
    await logHas('parent', 'pid=');
    const pid = Number(/pid=(\d+)/.exec(await parent.logTail(5))?.[1]);
    expect(alive(pid)).toBe(true);
    process.kill(parent.pid!, 'SIGKILL');
    await expect.poll(() => alive(pid)).toBe(false);
  });

  it('echoes output with the name before each line, and still writes the log', async () => {
    const lines: string[] = [];
    group = new ProcessGroup({ logFolder: folder, echo: (line) => lines.push(line) });
    const one = await group.start({ name: 'one', command: script('console.log("a\\nb"); console.error("c")') });
    await one.exited;
    await expect.poll(() => lines.toSorted()).toEqual(['[one] a', '[one] b', '[one] c']);
    await logHas('one', 'c');
  });
});

describe('the watchdog', () => {
  it('ends the processes that a killed parent leaves behind and removes its folder', async () => {
    const compiled = await transformFile(join(__dirname, 'watchdog.ts'), {
      swcrc: false,
      module: { type: 'commonjs' },
      jsc: { parser: { syntax: 'typescript' } },
    });
    const data = join(folder, 'data');
    await mkdir(data);
    await writeFile(join(folder, 'watchdog.cjs'), compiled.code);
    await writeFile(
      join(folder, 'parent.cjs'),
      `const { guard } = require('./watchdog.cjs');
       const child = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(STAY)}], { detached: true });
       guard(child.pid, ${JSON.stringify(data)});
       console.log(String(child.pid));
       setInterval(() => {}, 1e6);`,
    );
    const parent = spawn(process.execPath, [join(folder, 'parent.cjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    expect(alive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await expect.poll(() => alive(pid)).toBe(false);
    await expect.poll(() => existsSync(data)).toBe(false);
  });
});
