import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { inject, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, type Reply } from '../../../../test/system/gateway';
import { generate, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(10);

describe('input that is wrong', () => {
  const sampling = (fields: object) => ({ ...generate(3), sampling_params: fields });
  const CASES: [string, object | string, number, string, string?][] = [
    ['no JSON', '{"input_ids":', 400, 'MALFORMED_JSON'],
    ['a list', '[]', 400, 'MALFORMED_JSON'],
    ['no prompt', {}, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['two prompts', { input_ids: [1], text: 'a' }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['an empty prompt', { input_ids: [] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['ids of another type', { input_ids: ['a'] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['a batch with an empty prompt', { input_ids: [[1], []] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['a batch of 200', { text: Array.from({ length: 200 }, () => 'a') }, 400, 'VALIDATION_FAILED', 'text'],
    ['a list of ids for one prompt', { ...generate(1), rid: ['a'] }, 400, 'VALIDATION_FAILED', 'rid'],
    ['one id for two prompts', { input_ids: [[1], [2]], rid: ['a', 'a'] }, 400, 'VALIDATION_FAILED', 'rid'],
    ['a number as id', { input_ids: [[1], [2]], rid: ['a', 2] }, 400, 'VALIDATION_FAILED', 'rid.1'],
    [
      'an id for two samples',
      { input_ids: [[1]], rid: ['a'], sampling_params: { n: 2 } },
      400,
      'VALIDATION_FAILED',
      'rid',
    ],
    ['a list of ids to pass', { ...sampling({ max_new_tokens: 0 }), rid: ['a'] }, 400, 'VALIDATION_FAILED', 'rid'],
    ['n of 10,000', sampling({ n: 10_000 }), 400, 'VALIDATION_FAILED', 'sampling_params.n'],
    ['a budget as text', sampling({ max_new_tokens: '9' }), 400, 'VALIDATION_FAILED', 'sampling_params.max_new_tokens'],
    ['a number as text', sampling({ top_p: '1' }), 400, 'VALIDATION_FAILED', 'sampling_params.top_p'],
    ['sampling of another type', sampling(5 as never), 400, 'VALIDATION_FAILED', 'sampling_params'],
    ['a list of sampling for one prompt', sampling([{}]), 400, 'VALIDATION_FAILED', 'sampling_params'],
    ['sampling of one of two prompts', { input_ids: [[1], [2]], sampling_params: [{}] }, 400, 'VALIDATION_FAILED'],
    ['a negative budget', sampling({ max_new_tokens: -1 }), 400, 'VALIDATION_FAILED', 'sampling_params.max_new_tokens'],
    ['a stop text of 10 MB', sampling({ stop: ['x'.repeat(1e7)] }), 400, 'VALIDATION_FAILED', 'sampling_params'],
    ['a stop list of 10 MB', sampling({ stop: Array(1e6).fill('longer') }), 400, 'VALIDATION_FAILED'],
    ['a list of stop tokens of 10 MB', sampling({ stop_token_ids: Array(2e6).fill(1000) }), 400, 'VALIDATION_FAILED'],
  ];
  it('is refused before it reaches an engine', async () => {
    for (const [name, body, status, code, param] of CASES) {
      const { status: answered, body: reply } = await system.gateway.post('/generate', body);
      expect([answered, reply.error.type, reply.error.retryable], name).toEqual([status, code, false]);
      if (param !== undefined) expect(reply.error.param, name).toBe(param);
    }
    expect((await fetchState(system.bench.engine.url)).requests.received).toBe(0);
  });

  it('in headers, size, method or path is refused', async () => {
    const wrong = await system.gateway.post('/generate', generate(3), { 'x-broomwagon-priority': 'high' });
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'x-broomwagon-priority']);
    for (const [header, value] of [
      ['x-broomwagon-resume', 'false'],
      ['x-broomwagon-on-engine-abort', 'Resume'],
      ['x-broomwagon-details', 'yes'],
      ['x-broomwagon-trajectory', 'on'],
    ] as const) {
      for (const path of ['/generate', '/inference/v1/generate', '/v1/completions', '/v1/chat/completions']) {
        const bodies = { token_ids: [1], prompt: 'a', messages: [{ role: 'user', content: 'a' }], max_tokens: 1 };
        const body = path === '/generate' ? generate(1) : { ...bodies, sampling_params: { max_tokens: 1 } };
        const { status, body: reply } = await system.gateway.post(path, body, { [header]: value });
        expect([status, reply.error.type, reply.error.param]).toEqual([400, 'VALIDATION_FAILED', header]);
      }
    }
    const far = await system.gateway.post('/generate', generate(3), { 'x-broomwagon-priority': '12' });
    expect([far.status, far.body.error.type]).toEqual([400, 'VALIDATION_FAILED']);
    expect((await system.gateway.get('/generate')).status).toBe(405);
    const nothing = await system.gateway.get('/nothing');
    expect([nothing.status, nothing.body.error]).toMatchObject([404, { type: 'ROUTE_NOT_FOUND', code: 404 }]);
    const small = await Gateway.start(system.bench.prefix, system.bench.pool, { maxBodyBytes: 1_024 });
    const large = await small.post('/generate', { text: 'x'.repeat(2_000) });
    expect([large.status, large.body.error.type]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    await small.close();
  });

  /** Sends text as it is. @returns the whole reply, once the gateway has closed the connection */
  const sendRaw = async (text: string, gateway = system.gateway): Promise<string> => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    let reply = '';
    socket.on('data', (chunk) => (reply += chunk.toString()));
    socket.write(text);
    await once(socket, 'close');
    return reply;
  };
  const HEAD = 'Host: localhost\r\nConnection: close\r\n';

  const answerTo = async (text: string, gateway?: Gateway) => {
    const reply = await sendRaw(text, gateway);
    const [head, body] = reply.split('\r\n\r\n') as [string, string];
    expect(head).toMatch(/\r\ncontent-type: application\/json\r\n/i);
    const { type, code } = (JSON.parse(body) as Reply['body']).error;
    return [Number(head.split(' ')[1]), code, type];
  };

  it('in the request target is refused', async () => {
    const targets = [
      ['http://[/', 404, 'ROUTE_NOT_FOUND'],
      ['//[/', 404, 'ROUTE_NOT_FOUND'],
      ['/%', 404, 'ROUTE_NOT_FOUND'],
      ['*', 404, 'ROUTE_NOT_FOUND'],
      ['/workers/%', 405, 'METHOD_NOT_ALLOWED'],
      ['/sessions/%/v1/models', 400, 'VALIDATION_FAILED'],
      ['a path', 400, 'VALIDATION_FAILED'],
    ] as const;
    for (const [target, status, type] of targets) {
      expect(await answerTo(`GET ${target} HTTP/1.1\r\n${HEAD}\r\n`), target).toEqual([status, status, type]);
    }
    expect((await sendRaw(`GET http://a/v1/models HTTP/1.1\r\n${HEAD}\r\n`)).slice(9, 12)).toBe('200');
  });

  it('in a body that no route reads is not awaited', async () => {
    for (const path of ['/health', '/liveness', '/health_generate', '/readiness', '/v1/models', '/workers']) {
      const reply = await sendRaw(`GET ${path} HTTP/1.1\r\n${HEAD}Content-Length: 9999999999\r\n\r\n{`);
      expect(reply.slice(9, 12), path).toBe('200');
    }
  });

  it('in headers that are many or long is refused', async () => {
    for (const headers of ['a: b\r\n'.repeat(300), 'a: b\r\n'.repeat(5_000), `a: ${'x'.repeat(40_000)}\r\n`]) {
      const answer = await answerTo(`GET /v1/models HTTP/1.1\r\n${HEAD}${headers}\r\n`);
      expect(answer, `${headers.length} bytes`).toEqual([431, 431, 'PAYLOAD_TOO_LARGE']);
    }
    expect((await system.gateway.get('/v1/models', { 'x-long': 'x'.repeat(20_000) })).status).toBe(200);
  });

  it('that does not arrive in time is refused, and its connection is closed', async () => {
    const slow = await Gateway.start(system.bench.prefix, system.bench.pool, { bodyTimeoutMs: 1_000 });
    const head = `POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n`;
    const answers = await Promise.all([head, `${head}{`].map((text) => answerTo(text, slow)));
    expect(answers).toEqual([
      [408, 408, 'VALIDATION_FAILED'],
      [408, 408, 'VALIDATION_FAILED'],
    ]);
    await slow.close();
  });

  it.each([
    ['error-400', 'simulated refusal'],
    ['abort-with-400', 'simulated abort with a status'],
  ])('for the engine is answered with the message of the engine: %s', async (kind, said) => {
    await inject(system.bench.engine.url, { kind });
    const reply = await system.gateway.post('/generate', generate(3));
    expect([reply.status, reply.body.error.type]).toEqual([400, 'ENGINE_REJECTED']);
    expect(reply.body.error.message).toContain(said);
  });

  it.each([false, true])('that is longer than the context is refused; streamed: %s', async (stream) => {
    const reply = await system.gateway.post('/generate', { ...generate(200_000), stream });
    expect([reply.status, reply.body.error]).toMatchObject([400, { type: 'CONTEXT_TOO_LONG', code: 400 }]);
    expect(reply.headers['x-broomwagon-attempts']).toBe('1');
  });
});
