import OpenAI from 'openai';
import { beforeEach, expect, it } from 'vitest';
import { inject } from '../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, open, recordingFetch } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

const body = { input_ids: [1], sampling_params: { max_new_tokens: 6, sampling_seed: 7 } };

const system = useGateway(6, { speed: 20, gateway: { silenceMs: 40, engineStallTimeoutMs: 400 } });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

/** The reply as its client reads it, once `act` was done after its first byte. */
function fetchReply(act: () => void, more: object = {}): Promise<{ status: number; type?: string; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = open(`${gateway.url}/generate`, { ...body, ...more }, {}, (response) => {
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
  const { status, type, text } = await fetchReply(() => undefined);
  expect([status, type, text[0]]).toEqual([200, 'application/json', ' ']);
  const quick = await gateway.post('/generate', body);
  expect(JSON.parse(text).output_ids).toEqual(quick.body.output_ids);
});

it('an error after the first white space is the body of the answer', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  let closing: Promise<void> | undefined;
  const { status, text } = await fetchReply(() => (closing = gateway.close()));
  expect([status, JSON.parse(text).error]).toMatchObject([200, { type: 'SHUTTING_DOWN', code: 503, retryable: true }]);
  await closing;
});

it('a silent stream gets comments between its events', async () => {
  const quick = await gateway.post('/generate', { ...body, stream: true });
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  const { status, type, text } = await fetchReply(() => undefined, { stream: true });
  expect([status, type]).toEqual([200, 'text/event-stream; charset=utf-8']);
  expect(text).toMatch(/\n\n:\n\n/);
  const parseOutputIds = (stream: string) => (parseEvents(stream).at(-2) as { output_ids: number[] }).output_ids;
  expect(parseOutputIds(text)).toEqual(parseOutputIds(quick.body));
});

it('the client of OpenAI ignores the comments of a silent stream', async () => {
  const { raw, fetch } = recordingFetch();
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0, fetch });
  const request = { model: 'simulated', prompt: 'a', max_tokens: 6, seed: 7 };
  const whole = await client.completions.create(request);
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  let text = '';
  for await (const chunk of await client.completions.create({ ...request, stream: true })) {
    text += chunk.choices[0]?.text ?? '';
  }
  expect(text).toBe(whole.choices[0]!.text);
  expect(raw.join('')).toContain('\n\n:\n\n');
});

it('a stream begins with a comment, and an error after it is an event', async () => {
  await inject(bench.engine.url, { kind: 'hang' });
  let closing: Promise<void> | undefined;
  const { status, text } = await fetchReply(() => (closing = gateway.close()), { stream: true });
  expect([status, text.slice(0, 3)]).toEqual([200, ':\n\n']);
  expect(parseEvents(text)).toMatchObject([{ error: { type: 'SHUTTING_DOWN' } }, null]);
  await closing;
});
