import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { EngineDialect } from '@broomwagon/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { selectZoo, startEngine } from '../test-engine';
import { ZOO } from './zoo';

type Engine = Awaited<ReturnType<typeof startEngine>>;

const engines = new Map<EngineDialect, Engine>();
beforeAll(async () => {
  const lengths = { name: 'test', getLength: () => 24 };
  for (const dialect of ['vllm', 'sglang', 'openai'] as const) {
    engines.set(dialect, await startEngine(dialect, { lengths, streamMs: 0 }));
  }
});
afterAll(() => Promise.all([...engines.values()].map((engine) => engine.close())));

interface Raw {
  status?: number;
  encoding?: string;
  /** Data of the HTTP chunks; the last chunk may be missing. */
  chunks: Buffer[];
  isBroken: boolean;
}

/** Reads the bytes of one stream. */
function readRaw(url: string, path: string, body: object): Promise<Raw> {
  return new Promise((resolve) => {
    const raw: Raw = { chunks: [], isBroken: false };
    const headers = { 'accept-encoding': 'gzip', 'x-request-id': 'raw' };
    const sent = httpRequest(`${url}${path}`, { method: 'POST', agent: false, headers }, (response) => {
      raw.status = response.statusCode;
      raw.encoding = response.headers['content-encoding'];
      response.on('data', (chunk: Buffer) => raw.chunks.push(chunk));
      response.on('end', () => resolve(raw));
      response.on('error', () => resolve({ ...raw, isBroken: true }));
    });
    sent.on('error', () => resolve({ ...raw, isBroken: true }));
    sent.end(JSON.stringify(body));
  });
}

const tools = [{ type: 'function', function: { name: 'search' } }];

/** Request whose response shows a behaviour. */
function bodyFor(name: string, dialect: EngineDialect): [string, object] {
  if (name.startsWith('tool-') || name === 'finish-before-arguments') {
    return ['/v1/chat/completions', { stream: true, tools, messages: [{ role: 'user', content: 'raw' }], seed: 3 }];
  }
  // The stop text has a digit, since each response of the simulator has digits.
  const stop = ['7 t'];
  if (dialect === 'sglang') {
    const sampling = { max_new_tokens: 64, sampling_seed: 3, stop };
    return ['/generate', { stream: true, text: 'raw', rid: 'raw', return_logprob: true, sampling_params: sampling }];
  }
  const ids = { return_token_ids: true, logprobs: 1 };
  return ['/v1/completions', { stream: true, prompt: 'raw', max_tokens: 64, seed: 3, stop, ...ids }];
}

const cases = ZOO.filter(
  ({ server, name }) => server === undefined && name !== 'hung-healthy' && !name.startsWith('abort-'),
).flatMap(({ name, dialects }) => dialects.map((dialect) => ({ name, dialect })));

it.each(cases)('$name changes the bytes that $dialect sends', async ({ name, dialect }) => {
  const { url } = engines.get(dialect)!;
  const [path, body] = bodyFor(name, dialect);
  const read = async (entries: string[]): Promise<unknown> => {
    await selectZoo(url, { entries, at: 5 });
    const { chunks, ...others } = await readRaw(url, path, body);
    const text = Buffer.concat(chunks)
      .toString('latin1')
      .replaceAll(/"created":\d+/g, '');
    return { ...others, text, sizes: name === 'every-byte' ? new Set(chunks.map(({ length }) => length)) : undefined };
  };
  // The base has a behaviour without a visible effect, since with any behaviour the stream comes token by token.
  const other = name === 'sglang-new' ? 'sglang-whole' : 'sglang-new';
  const base = dialect === 'sglang' ? [other] : ['closes-unnoticed'];
  expect(await read([...(dialect === 'sglang' && name.startsWith('sglang-') ? [] : base), name])).not.toEqual(
    await read(base),
  );
});

it('each behaviour has a different name', () => {
  const names = ZOO.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

it('each behaviour names the spec file with its test', () => {
  for (const { name, server, isAboutTools, test } of ZOO) {
    // Three specs take their cases from the zoo by these fields; in other specs, the test has the name of the entry.
    if (isAboutTools) expect(test, name).toBe('apps/gateway/src/dialects/zoo-tools.spec.ts');
    else if (server === undefined) expect(test, name).toBe('lab/engine-simulator/src/zoo/zoo-streams.spec.ts');
    else if (server.restart) expect(test, name).toBe('lab/engine-simulator/src/zoo/zoo-servers.spec.ts');
    else expect(readFileSync(test, 'utf8'), name).toContain(name);
  }
});
