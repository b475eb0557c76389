import { describe, expect, it } from 'vitest';
import { inject, stateOf } from '../lab/engine-simulator/src/test-engine';
import { Gateway } from './system/gateway';
import { generate, useGateway } from './system/gateway-bench';

const system = useGateway(4);

describe('input that is wrong', () => {
  const sampling = (fields: object) => ({ ...generate(3), sampling_params: fields });
  const CASES: [string, object | string, number, string, string?][] = [
    ['no JSON', '{"input_ids":', 400, 'MALFORMED_JSON'],
    ['a list', '[]', 400, 'MALFORMED_JSON'],
    ['no prompt', {}, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['two prompts', { input_ids: [1], text: 'a' }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['an empty prompt', { input_ids: [] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['ids of another type', { input_ids: ['a'] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['a batch of ids', { input_ids: [[1], [2]] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['a batch of texts', { text: ['a', 'b'] }, 400, 'VALIDATION_FAILED', 'text'],
    ['a list of ids of requests', { ...generate(1), rid: ['a'] }, 400, 'VALIDATION_FAILED', 'rid'],
    ['n of 10,000', sampling({ n: 10_000 }), 400, 'VALIDATION_FAILED', 'sampling_params.n'],
    ['no budget', sampling({ max_new_tokens: 0 }), 400, 'VALIDATION_FAILED', 'sampling_params.max_new_tokens'],
    ['a budget as text', sampling({ max_new_tokens: '9' }), 400, 'VALIDATION_FAILED', 'sampling_params.max_new_tokens'],
    ['a number as text', sampling({ top_p: '1' }), 400, 'VALIDATION_FAILED', 'sampling_params.top_p'],
    ['sampling of another type', sampling([1]), 400, 'VALIDATION_FAILED', 'sampling_params'],
    ['a stop list of 1 MB', sampling({ stop: ['x'.repeat(1e6)] }), 400, 'VALIDATION_FAILED'],
  ];
  it('is refused before it reaches an engine', async () => {
    for (const [name, body, status, code, param] of CASES) {
      const { status: answered, body: reply } = await system.gateway.post('/generate', body);
      expect([answered, reply.error.type, reply.error.retryable], name).toEqual([status, code, false]);
      if (param !== undefined) expect(reply.error.param, name).toBe(param);
    }
    expect((await stateOf(system.bench.engine.url)).requests.received).toBe(0);
  });

  it('in headers, size, method or path is refused', async () => {
    const wrong = await system.gateway.post('/generate', generate(3), { 'x-broomwagon-priority': 'high' });
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'x-broomwagon-priority']);
    const far = await system.gateway.post('/generate', generate(3), { 'x-broomwagon-priority': '12' });
    expect([far.status, far.body.error.type]).toEqual([400, 'VALIDATION_FAILED']);
    expect((await system.gateway.get('/generate')).status).toBe(405);
    expect((await system.gateway.get('/nothing')).status).toBe(404);
    const flood = await system.gateway.post('/generate', generate(3), { 'x-flood': 'x'.repeat(40_000) });
    expect(flood.status).toBe(431);
    const small = await Gateway.start(system.bench.prefix, system.bench.pool, { maxBodyBytes: 1_024 });
    const large = await small.post('/generate', { text: 'x'.repeat(2_000) });
    expect([large.status, large.body.error.type]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    await small.close();
  });

  it('for the engine is answered with what the engine says', async () => {
    await inject(system.bench.engine.url, { kind: 'error-400' });
    const reply = await system.gateway.post('/generate', generate(3));
    expect([reply.status, reply.body.error.type]).toEqual([422, 'ENGINE_REJECTED']);
    expect(reply.body.error.message).toContain('simulated refusal');
  });
});
