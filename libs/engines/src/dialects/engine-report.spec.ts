import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LIMITS } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createEngineAdapter } from '../detect-engine';
import { NO_VERSION } from './versions';
import { ANY_MODEL } from './model-list';

let pages: Record<string, string>;
let asked: string[];
const server = createServer((request, response) => {
  asked.push(request.url!);
  const page = pages[request.url!];
  response.writeHead(page === undefined ? 404 : 200).end(page ?? '{}');
});
let url: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  asked = [];
});

it('reads load and start of vLLM from one page, and asks a vLLM without a route for its weights once', async () => {
  const adapter = createEngineAdapter('vllm', url);
  pages = { '/metrics': 'vllm:num_requests_running 2\nprocess_start_time_seconds 1.73228300047e+09\n' };
  const report = { load: { running: 2, waiting: 0 }, startedAtSeconds: 1_732_283_000.47 };
  expect(await adapter.report()).toMatchObject(report);
  expect(await adapter.report()).toMatchObject(report);
  expect(asked.filter((path) => path !== '/v1/models')).toEqual(['/metrics', '/weight_info', '/metrics']);
  // Another start may be another version.
  pages = { '/metrics': 'process_start_time_seconds 1732283001', '/weight_info': '{"weight_version":"7"}' };
  expect(await adapter.report()).toEqual({ startedAtSeconds: 1_732_283_001, weightVersion: 7 });
});

it.each(['/get_model_info', '/model_info'])('reads the weights of SGLang from %s', async (path) => {
  const adapter = createEngineAdapter('sglang', url);
  pages = { [path]: '{"weight_version":"12"}', '/get_load': '[{"num_reqs":3,"num_waiting_reqs":1}]' };
  expect(await adapter.report()).toMatchObject({ load: { running: 2, waiting: 1 }, weightVersion: 12 });
  pages[path] = '{"weight_version":"default"}';
  expect((await adapter.report()).weightVersion).toBe(NO_VERSION);
  pages = {};
  expect(await adapter.report()).toEqual({});
});

it('reports nothing for an engine of another dialect', async () => {
  expect(await createEngineAdapter('openai', url).report()).toEqual({});
});

it.each(['vllm', 'sglang', 'openai'] as const)('reads the models and adapters that %s lists', async (dialect) => {
  const adapter = createEngineAdapter(dialect, url);
  const list = (...ids: unknown[]) => (pages = { '/v1/models': JSON.stringify({ data: ids.map((id) => ({ id })) }) });
  list('base', 'lora-a', 'base');
  expect((await adapter.report()).models).toEqual(['base', 'lora-a']);
  // Names that cannot be stored, and very many of them.
  for (const id of ['a\nb', '', 'x'.repeat(257)]) {
    list('base', id, 'last');
    expect((await adapter.report()).models).toEqual(['base', ANY_MODEL]);
  }
  list(...Array.from({ length: 2_000 }, (_, n) => `adapter-${n}`));
  const { models = [] } = await adapter.report();
  expect(models.join('\n').length).toBeLessThanOrEqual(LIMITS.modelListBytes + 2);
  expect(models.at(-1)).toBe(ANY_MODEL);
  pages = { '/v1/models': '{"data":[]}' };
  expect((await adapter.report()).models).toBeUndefined();
});
