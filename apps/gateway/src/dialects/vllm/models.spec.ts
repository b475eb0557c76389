import type { EngineDialect } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inEngine, selectZoo, startEngine } from '../../../../../lab/engine-simulator/src/test-engine';
import { ZOO } from '../../../../../lab/engine-simulator/src/zoo/zoo';
import { useGateway } from '../../../../../test/system/gateway-bench';
import { StubEngine } from '../../../../../test/system/stub-engine';

const RESTARTS = ZOO.filter(({ server }) => server?.restart !== undefined);

const system = useGateway(10, {
  speed: 20,
  registered: 'none',
  balancer: { probeIntervalMs: 200, serverFailedAfterMs: 800 },
});
let { bench, gateway } = system;
let second: Awaited<ReturnType<typeof startEngine>>;
beforeAll(async () => {
  second = await startEngine('vllm', { model: 'other' });
});
afterAll(() => second.close());
beforeEach(() => {
  ({ bench, gateway } = system);
});

const completion = (model?: string) => ({ prompt: 'hi', max_tokens: 3, model });
async function register(serverId: string, endpoint: string, dialect: EngineDialect = 'vllm'): Promise<void> {
  await bench.register({ serverId, endpoint, dialect, model: undefined });
}

it('lists the models of all engines, and sends a request to an engine that has the model it names', async () => {
  const first = await startEngine('vllm', { model: 'simulated' });
  await register('first', first.url);
  await register('second', second.url);
  const { body } = await gateway.get('/v1/models');
  expect(body.data.map(({ id }: { id: string }) => id).sort()).toEqual(['other', 'simulated']);
  for (const [model, server] of [
    ['simulated', 'first'],
    ['other', 'second'],
  ] as const) {
    for (let n = 0; n < 3; n++) {
      const reply = await gateway.post('/v1/completions', completion(model));
      expect([reply.status, reply.body.model, reply.headers['x-broomwagon-server']]).toEqual([200, model, server]);
    }
    const chat = { model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 3 };
    expect((await gateway.post('/v1/chat/completions', chat)).headers['x-broomwagon-server']).toBe(server);
  }
  const refused = await gateway.post('/v1/completions', completion('nothing'));
  expect([refused.status, refused.body.error.code ?? refused.body.error.type]).toEqual([404, 'model_not_found']);
  await first.close();
});

it.each([
  ['vllm', 'model', '/v1/completions', completion('lora')],
  ['sglang', 'lora_path', '/generate', { input_ids: [5], sampling_params: { max_new_tokens: 1 }, lora_path: 'lora' }],
] as const)(
  'sends each request that names an adapter to the engine that has it: %s, %s',
  async (dialect, field, path, body) => {
    const engines = [await StubEngine.start(dialect, 'm'), await StubEngine.start(dialect, 'm', 'lora')];
    for (const [index, { url: endpoint }] of engines.entries()) {
      await bench.register({ serverId: `stub-${index}`, instanceId: `i${index}`, endpoint, dialect, model: 'm' });
    }
    for (let n = 0; n < 5; n++) expect((await gateway.post(path, body)).status).toBe(200);
    expect(engines.map(({ calls }) => calls.map((call) => call.body[field]))).toEqual([[], Array(5).fill('lora')]);
    for (const engine of engines) engine.close();
  },
);

describe.each(['vllm', 'sglang', 'openai'] as const)(
  'an engine of %s that is started again under a call',
  (dialect) => {
    it.each(RESTARTS.filter(({ dialects }) => dialects.includes(dialect)))(
      '$name: later calls get the model of the new start alone',
      async ({ name, server }) => {
        const lengths = { name: 'test', getLength: () => 4_000 };
        const engine = await startEngine(dialect, { lengths, speed: 10 });
        await register('one', engine.url, dialect);
        const ask = (model?: string, maxTokens = 3) =>
          gateway.post('/v1/completions', { ...completion(model), max_tokens: maxTokens });
        expect((await ask('simulated')).status).toBe(200);
        const running = ask('simulated', 200);
        await expect.poll(() => inEngine(engine.url)).toBe(1);
        await selectZoo(engine.url, { entries: [name] });
        const { model, dialect: changed } = server!.restart!;
        if (changed !== undefined) {
          // An engine of another dialect does not describe itself in the registered one.
          const states = async () =>
            (await bench.client.call(bench.pool, 'server.list', {})).servers.map((one) => one.state);
          await expect.poll(states).toEqual(['failed']);
          await register('one', engine.url, changed(dialect));
        }
        if (model === undefined) {
          const { status, body } = await running;
          expect([status, body.usage.completion_tokens]).toEqual([200, 200]);
        } else {
          await expect.poll(async () => (await ask()).body.model).toBe(model);
          // SGLang does not compare the name in a call with its model, and a pool of one model leaves the name to the engine.
          const comparesNames = (changed?.(dialect) ?? dialect) !== 'sglang';
          if (comparesNames) expect((await ask('simulated')).status).toBe(404);
          const { status } = await running;
          if (comparesNames) expect(status).toBe(404);
        }
        await engine.close();
      },
    );
  },
);
