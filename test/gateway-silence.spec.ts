import { beforeEach, expect, it } from 'vitest';
import { inject } from '../lab/engine-simulator/src/test-engine';
import { open } from './system/gateway';
import { useGateway } from './system/gateway-bench';

const body = { input_ids: [1], sampling_params: { max_new_tokens: 6, sampling_seed: 7 } };

const system = useGateway(4, { speed: 20, gateway: { silenceMs: 40, engineStallTimeoutMs: 400 } });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

/** The reply as its client reads it, once `act` was done after its first byte. */
function replyOf(act: () => void): Promise<{ status: number; type?: string; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = open(`${gateway.url}/generate`, body, {}, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        if (text === '') act();
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, type: response.headers['content-type'], text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
  });
}

it('a silent answer begins with white space, and is the JSON of any other answer', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  const { status, type, text } = await replyOf(() => undefined);
  expect([status, type, text[0]]).toEqual([200, 'application/json', ' ']);
  const quick = await gateway.post('/generate', body);
  expect(JSON.parse(text).output_ids).toEqual(quick.body.output_ids);
});

it('an error after that point is the body of the answer', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  let closing: Promise<void> | undefined;
  const { status, text } = await replyOf(() => (closing = gateway.close()));
  expect([status, JSON.parse(text).error]).toMatchObject([200, { type: 'SHUTTING_DOWN', code: 503, retryable: true }]);
  await closing;
});
