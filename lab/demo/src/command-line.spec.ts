import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Folder of the built programs, which these tests run as a user does. */
const dist = resolve('dist/lab/demo/src');

interface Ended {
  code: number | null;
  out: string;
  errors: string;
}

describe('the programs from the command line', () => {
  let folder: string;
  let stranger: Server;

  beforeAll(() => {
    expect(existsSync(join(dist, 'main.js')), 'run `npm run build` first').toBe(true);
    folder = mkdtempSync(join(tmpdir(), 'trainer-spec-'));
    stranger = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
  });
  afterAll(() => {
    stranger.close();
    rmSync(folder, { recursive: true });
  });

  function start(program: string, args: readonly string[], input = '') {
    // The private folder for temporary files shows whether anything was started or left behind.
    const child = spawn(process.execPath, [join(dist, program), ...args], { env: { ...process.env, TMPDIR: folder } });
    let out = '';
    let errors = '';
    child.stdout.on('data', (data: Buffer) => (out += data.toString()));
    child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
    child.stdin.on('error', () => undefined).end(input);
    const ended = new Promise<Ended>((done) => child.once('close', (code) => done({ code, out, errors })));
    return { child, ended, output: () => out };
  }
  const run = (program: string, args: readonly string[], input?: string) => start(program, args, input).ended;

  function file(name: string, text: string): string {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  }

  it('end with code 2 and one message on a bad option or a bad prompts file, with nothing started', async () => {
    const before = readdirSync(folder);
    for (const [args, message, input] of [
      [['--nonsense'], /unknown option '--nonsense'/],
      [['--over-provision', '0.5'], /--over-provision/],
      [['--prompts', '-'], /line 2: not JSON/, '{"prompt":"a"}\n{"prompt"\n'],
      [['--prompts', '/no/such/file'], /cannot read the prompts/],
      [['--groups', '100000'], /more groups than prompts|--groups/],
    ] as [string[], RegExp, string?][]) {
      const { code, out, errors } = await run('main.js', args, input);
      expect(errors).toMatch(message);
      expect({ code, out }).toEqual({ code: 2, out: '' });
    }
    expect(readdirSync(folder)).toEqual(before);
  });

  it('refuse a URL without an engine, with nothing started', async () => {
    const before = readdirSync(folder);
    const { port } = stranger.address() as AddressInfo;
    const other = await run('main.js', ['--engine', `http://127.0.0.1:${port}`]);
    expect(other).toMatchObject({ code: 1, out: '', errors: expect.stringMatching(/^ENGINE_PROTOCOL: /) as string });
    const silent = await run('main.js', ['--engine', 'http://127.0.0.1:1']);
    expect(silent).toMatchObject({ code: 1, errors: expect.stringMatching(/^ENGINE_UNREACHABLE: /) as string });
    expect(readdirSync(folder)).toEqual(before);
  });

  it('end everything on Ctrl-C during the start', async () => {
    const before = readdirSync(folder);
    const { child, ended, output } = start('main.js', ['--once']);
    await expect.poll(output, { timeout: 60_000 }).toMatch(/Redis on /);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, out: expect.stringMatching(/Ending everything/) as string });
    await expect.poll(() => readdirSync(folder)).toEqual(before);
  });

  it('check results with only the two files', async () => {
    const prompts = file('prompts.jsonl', '{"id":"a","prompt":"x"}\n{"id":"b","prompt":"y"}\n');
    const line = (promptId: string) =>
      `{"promptId":"${promptId}","sampleIndex":0,"finishReason":"stop","segments":[]}\n`;
    const whole = file('whole.jsonl', line('a') + line('b'));
    const broken = file('broken.jsonl', line('a') + line('a'));
    expect(await run('check-results.js', [prompts, whole])).toMatchObject({ code: 0 });
    const bad = await run('check-results.js', [prompts, broken, '--json']);
    expect(bad.code).toBe(1);
    expect(JSON.parse(bad.out)).toMatchObject({ ok: false, lost: 1, duplicated: 1 });
    expect(await run('check-results.js', [prompts, join(folder, 'none')])).toMatchObject({ code: 2 });
    expect(await run('check-results.js', [prompts])).toMatchObject({ code: 2 });
    const first = file('first.jsonl', line('a'));
    expect(await run('check-results.js', [prompts, first])).toMatchObject({ code: 1 });
    const oneStep = ['--steps', '1', '--groups', '1'];
    expect(await run('check-results.js', [prompts, first, ...oneStep])).toMatchObject({ code: 0 });
    expect(await run('check-results.js', [prompts, first, ...oneStep, '--first', '1'])).toMatchObject({ code: 2 });
  });
});
