import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../apps/cli/src/program';
import { formatDuration, formatFields, formatTable, formatTime, layout } from '../apps/cli/src/tables';
import { CommandLine } from './system/command-line';

const cli = new CommandLine(['--url', 'http://127.0.0.1:1', '--token', 'x']);
const lines = (text: string) => text.split('\n').filter((line) => line !== '');
/** Words that complete a command line, as a shell would ask. */
async function complete(...words: string[]): Promise<string[]> {
  const { stdout } = await new CommandLine([]).run([
    '--url',
    'http://127.0.0.1:1',
    '--token',
    'x',
    'complete',
    '--',
    ...words,
  ]);
  return lines(stdout).map((line) => line.split('\t')[0]!);
}

describe('completion', () => {
  it('completes commands, options and choices from the program itself', async () => {
    expect(await complete('serv')).toEqual(['servers']);
    expect(await complete('rounds', '')).toEqual(['list', 'get', 'groups', 'timeline', 'cancel']);
    expect(await complete('rounds', 'cancel', 'r1', '--mode', 're')).toEqual(['requeue']);
    expect(await complete('log-level', 'de')).toEqual(['debug']);
    expect(await complete('servers', 'add', '--max')).toEqual(['--max-inflight']);
    expect(await complete('servers', 'get', '--po')).toEqual(['--pool']);
    // admin-api does not answer: there are no ids.
    expect(await complete('servers', 'get', '')).toEqual([]);
    expect(await complete('')).not.toContain('complete');
  });

  describe('in a shell', () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'completion-'));
      const program = join(folder, 'broomwagon');
      writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${resolve('scripts/broomwagon.mjs')} "$@"\n`);
      chmodSync(program, 0o755);
    });
    afterAll(() => rmSync(folder, { recursive: true }));
    const environment = () => ({ PATH: `${folder}:${process.env.PATH}`, BROOMWAGON_URL: 'http://127.0.0.1:1' });
    const hasShell = (name: string) => spawnSync(name, ['-c', 'exit'], { stdio: 'ignore' }).status === 0;

    it.skipIf(!hasShell('bash'))('is loaded and asked by bash', () => {
      const script = [
        'eval "$(broomwagon completion bash)"',
        'COMP_WORDS=(broomwagon rounds cancel r1 --mode "")',
        'COMP_CWORD=5',
        '_broomwagon',
        'printf "%s\\n" "${COMPREPLY[@]}"',
      ];
      const output = execFileSync('bash', ['-c', script.join('\n')], { encoding: 'utf8', env: environment() });
      expect(lines(output)).toEqual(['requeue', 'drop']);
    });

    it.skipIf(!hasShell('zsh'))('is read by zsh without an error', () => {
      const script =
        'autoload -U compinit && compinit -u -D && eval "$(broomwagon completion zsh)" && whence _broomwagon';
      expect(execFileSync('zsh', ['-fc', script], { encoding: 'utf8', env: environment() })).toMatch(/_broomwagon/);
    });

    it.skipIf(!hasShell('fish'))('is asked by fish', () => {
      const script = 'broomwagon completion fish | source; complete -C "broomwagon rounds cancel r1 --mode "';
      const output = execFileSync('fish', ['-c', script], { encoding: 'utf8', env: environment() });
      expect(lines(output).map((line) => line.split('\t')[0])).toEqual(expect.arrayContaining(['requeue', 'drop']));
    });
  });
});

describe('output for people', () => {
  it('has durations with two units and times with their zone', () => {
    expect([0, 999, 9_999, 90_000, 3_600_000, 7_260_000, 90_000_000].map(formatDuration)).toEqual([
      '0ms',
      '999ms',
      '9s',
      '1m30s',
      '1h',
      '2h1m',
      '1d1h',
    ]);
    expect([formatDuration(undefined), formatTime(undefined)]).toEqual(['-', '-']);
    expect(formatTime(1_764_400_000_123)).toBe('2025-11-29T07:06:40Z');
  });

  it('shows inner objects with their path, lists of objects as tables, and no milliseconds', () => {
    const shown = formatFields({
      serverId: 's1',
      heartbeatAgeMs: 65_000,
      drainUntilMs: 0,
      load: { kvUse: 0.5, tags: ['a', 'b'] },
      segments: [{ attempt: '1-a', tokenCount: 3, ageMs: 1_000 }],
      none: [],
    });
    expect(lines(shown).map((line) => line.split(/ {2,}/))).toEqual([
      ['serverId', 's1'],
      ['heartbeatAge', '1m5s'],
      ['drainUntil', '1970-01-01T00:00:00Z'],
      ['load.kvUse', '0.5'],
      ['load.tags', 'a, b'],
      ['none', '-'],
      ['SEGMENTS'],
      ['ATTEMPT', 'TOKENCOUNT', 'AGE'],
      ['1-a', '3', '1s'],
    ]);
  });

  it('fits a terminal of 80 columns, and leaves a pipe whole', () => {
    const rows = [{ id: 'a'.repeat(60), state: 'ready', reason: `${'b'.repeat(50)}z`, n: 1 }];
    const width = () =>
      Math.max(
        ...formatTable(rows)
          .split('\n')
          .map((line) => line.length),
      );
    expect(width()).toBeGreaterThan(120);
    try {
      layout.columns = 80;
      expect(width()).toBeLessThanOrEqual(80);
      expect(formatTable(rows)).toMatch(/a…a.*ready.*b…b+z/);
    } finally {
      layout.columns = Infinity;
    }
  });

  it('has a help of at most 80 columns for each command', () => {
    const program = createProgram({ ...process, stdout: Object.assign(process.stdout, {}) } as never);
    const commands = [program, ...program.commands, ...program.commands.flatMap((one) => one.commands)];
    for (const command of commands) {
      command.configureHelp({ ...command.configureHelp(), helpWidth: 80 });
      const long = command
        .helpInformation()
        .split('\n')
        .filter((line) => line.length > 80);
      expect(long, command.name()).toEqual([]);
    }
  });
});

it('prints errors of usage as JSON under --json', async () => {
  for (const words of [
    ['stauts'],
    ['servers', 'get'],
    ['servers', 'get', 'a', 'b'],
    ['drain', 's', '--deadline', '5'],
    ['servers', 'get', ''],
    ['tokens', 'create'],
    ['--nonsense'],
  ]) {
    const { exitCode, stdout, stderr } = await cli.run([...words, '--json']);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'UsageError', reason: expect.any(String) } });
  }
});
