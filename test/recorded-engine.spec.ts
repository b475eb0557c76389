import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ManagedProcess } from '@broomwagon/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { selectZoo, startEngine } from '../lab/engine-simulator/src/test-engine';
import { loadRecordings } from '../lab/engine-simulator/src/zoo/recorded/recording';

const program = 'dist/lab/engine-simulator/src/main.js';
const REQUEST = { prompt: { text: 'a' }, sampling: { temperature: 0, stop: ['7 t'] }, maxTokens: 24 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'recorded-engine-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('one command records a stream of an engine, and a simulated engine replays the recording by its name', async () => {
  const environment = { ENGINE_RECORDINGS: join(folder, 'recordings') };
  const request = join(folder, 'request.json');
  writeFileSync(request, JSON.stringify(REQUEST));
  const engine = await startEngine('vllm', { streamMs: 0, lengths: { name: 'test', getLength: () => 24 } });
  await selectZoo(engine.url, { entries: ['vllm-stop-withheld', 'usage-in-each-chunk'] });
  const row = ['--name', 'recorded-one', '--behaviour', 'withholds text', '--release', 'vLLM 0.32'];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, 'record', engine.url, ...row, '--request', request],
    { env: { ...process.env, ...environment } },
  );
  await engine.close();
  expect(stdout).toContain('recorded-one.json');
  const [recording, ...others] = loadRecordings(environment.ENGINE_RECORDINGS);
  expect(others).toEqual([]);
  expect(recording).toMatchObject({ name: 'recorded-one', dialect: 'vllm', release: 'vLLM 0.32', request: REQUEST });

  const readyFile = join(folder, 'ready.json');
  const replay = new ManagedProcess({
    name: 'engine-simulator',
    logFile: join(folder, 'replay.log'),
    command: [process.execPath, program, '--engines', '1', '--port', '0', '--zoo', 'recorded-one'],
    environment: { ...environment, READY_FILE: readyFile },
    ready: async () => existsSync(readyFile),
  });
  await replay.start();
  try {
    const { servers } = JSON.parse(readFileSync(readyFile, 'utf8')) as { servers: { url: string }[] };
    const body = JSON.stringify({ model: 'simulated', prompt: 'another', stream: true });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${servers[0]!.url}/v1/completions`, { method: 'POST', headers, body });
    expect(await answer.text()).toBe(recording!.response.body);
  } finally {
    await replay.stop();
  }
});
