import { expect, it } from 'vitest';
import { inject } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../../../../test/system/gateway';
import { generate, useGateway } from '../../../../test/system/gateway-bench';

const ASKED = { 'x-broomwagon-details': 'body' };
const messages = [{ role: 'user', content: 'How many clips?' }];
const model = 'simulated';

const system = useGateway(9, { speed: 20 });

it.each<[string, object]>([
  ['/generate', generate(3)],
  ['/inference/v1/generate', { token_ids: [1, 2], sampling_params: { max_tokens: 3 } }],
  ['/skyrl/v1/generate', { token_ids: [1, 2], sampling_params: { max_tokens: 3 } }],
  ['/v1/completions', { model, prompt: 'a', max_tokens: 3 }],
  ['/v1/chat/completions', { model, messages, max_tokens: 3 }],
  ['/v1/messages', { model, messages, max_tokens: 3 }],
  ['/v1/responses', { model, input: 'a', max_output_tokens: 3 }],
])('an answer of %s has what its headers say, if the client asks for it', async (path, body) => {
  const { body: plain } = await system.gateway.post(path, body);
  expect(plain).not.toHaveProperty('broomwagon');
  const session = { 'x-session-id': 's', 'x-broomwagon-trajectory': 'record' };
  const { status, headers, body: answer } = await system.gateway.post(path, body, { ...ASKED, ...session });
  expect(status).toBe(200);
  const { broomwagon, ...others } = answer;
  expect(Object.keys(others).toSorted()).toEqual(Object.keys(plain).toSorted());
  const [version, end] = [/^(.*):0-(\d+)$/.exec(headers['x-broomwagon-weight-versions'] as string)].flatMap((found) =>
    found!.slice(1),
  );
  expect(broomwagon).toEqual({
    server: headers['x-broomwagon-server'],
    stamp: headers['x-broomwagon-stamp'],
    attempts: Number(headers['x-broomwagon-attempts']),
    weight_versions: [{ version, start: 0, end: Number(end) }],
    weight_source: headers['x-broomwagon-weight-source'] ?? 'engine',
    queue_ms: Number(headers['x-broomwagon-queue-ms']),
    first_token_ms: Number(headers['x-broomwagon-first-token-ms']),
    trajectory: headers['x-broomwagon-trajectory'],
  });
  expect([broomwagon.server, broomwagon.attempts, end]).toEqual(['s1', 1, '3']);
});

it('each choice has its own details, and other values of the header are refused', async () => {
  const choices = { model, prompt: 'a', max_tokens: 3, n: 2 };
  const { body: one } = await system.gateway.post('/v1/completions', choices, ASKED);
  expect(one.broomwagon).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);
  const batch = generate(3, { input_ids: [[1], [2]] });
  const { body: list } = await system.gateway.post('/generate', batch, ASKED);
  expect(list).toMatchObject([{ broomwagon: { attempts: 1 } }, { broomwagon: { attempts: 1 } }]);
  const refused = await system.gateway.post('/generate', generate(3), { 'x-broomwagon-details': 'all' });
  expect([refused.status, refused.body.error.param]).toEqual([400, 'x-broomwagon-details']);
});

it('describes the end of an answer whose headers were sent before it', async () => {
  const settings = { silenceMs: 40, engineStallTimeoutMs: 400 };
  const other = await Gateway.start(system.bench.prefix, system.bench.pool, settings);
  await inject(system.bench.engine.url, { kind: 'stall', afterTokens: 3 });
  const { headers, body } = await other.post('/generate', generate(6), ASKED);
  expect(Number(headers['x-broomwagon-attempts'])).toBeLessThan(2);
  expect(body.broomwagon).toMatchObject({ attempts: 2, weight_versions: [{ start: 0, end: 6 }] });
  await other.close();
});
