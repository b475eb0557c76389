import { afterEach, beforeEach, expect, it } from 'vitest';
import { Gateway, type Reply } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';
import { send, StubEngine } from '../../../../test/system/stub-engine';

const ENGINES = 4;
const MAX_FAILURES = 2;
const REQUESTS = 12;
/** Token of a prompt that no engine bears. */
const POISON = 666;

// Without a probe out of turn, no server would be heard again within a test.
const system = useGateway(2, {
  registered: 'none',
  balancer: { probeIntervalMs: 600_000 },
  gateway: { maxEngineFailures: MAX_FAILURES, engineFailurePauseMs: 20, engineFailureDeadlineMs: 60_000 },
});
let engines: StubEngine[];
let isFailing: boolean;
let strict: Gateway;

beforeEach(async () => {
  isFailing = true;
  engines = await Promise.all(Array.from({ length: ENGINES }, () => StubEngine.start('sglang')));
  for (const [index, engine] of engines.entries()) {
    const answer = engine.answer;
    engine.answer = (body, response, path) => {
      const isPoisoned = (body.input_ids as number[]).includes(POISON);
      if (isFailing || isPoisoned) return send(response, 500, { error: { message: 'broken' } });
      return answer(body, response, path);
    };
    await system.bench.register({
      serverId: `engine-${index}`,
      instanceId: 'first',
      endpoint: engine.url,
      dialect: 'sglang',
    });
  }
  // Ends a request with the first failure that counts, or with the second failure.
  const limits = { maxEngineFailures: 1, engineFailureDeadlineMs: 0 };
  strict = await Gateway.start(system.bench.prefix, system.bench.pool, limits);
});
afterEach(async () => {
  await strict.close();
  for (const engine of engines) engine.close();
});

let prompts = 0;
const ask = (gateway: Gateway, poison: number[] = []): Promise<Reply> =>
  gateway.post('/generate', { input_ids: [1, (prompts += 1), ...poison], sampling_params: { max_new_tokens: 1 } });
const askMany = (gateway: Gateway): Promise<Reply[]> =>
  Promise.all(Array.from({ length: REQUESTS }, () => ask(gateway)));
const countCalls = (): number => engines.reduce((sum, { calls }) => sum + calls.length, 0);

it('loses no response while all engines of a pool fail every call, and answer probes', async () => {
  const callsOfStrict = async () => {
    const before = countCalls();
    await askMany(strict);
    return countCalls() - before;
  };
  await expect.poll(callsOfStrict).toBe(2 * REQUESTS);

  const before = countCalls();
  const replies = askMany(system.gateway);
  // Some requests have failed on more servers than a request may fail on.
  await expect.poll(countCalls).toBeGreaterThan(before + 2 * MAX_FAILURES * REQUESTS);
  isFailing = false;
  expect((await replies).map(({ status }) => status)).toEqual(Array(REQUESTS).fill(200));
});

it('ends a response whose prompt alone fails on each engine', async () => {
  isFailing = false;
  const replies = askMany(system.gateway);
  const { status, body } = await ask(system.gateway, [POISON]);
  expect([status, body.error.type]).toEqual([502, 'ENGINE_ERROR']);
  const poisoned = engines.filter(({ calls }) =>
    calls.some((call) => (call.body.input_ids as number[]).includes(POISON)),
  );
  expect(poisoned).toHaveLength(MAX_FAILURES);
  expect((await replies).map(({ status: one }) => one)).toEqual(Array(REQUESTS).fill(200));
});
