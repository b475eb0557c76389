import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inEngine, inject, startEngine } from '../../lab/engine-simulator/src/test-engine';
import { parseEvents, Gateway, open, type Reply } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';

// Trainers that cannot be installed or are in no published package: this file sends requests that were recorded from
// their code, and checks the fields of the answers that this code reads. `trainers-python.check.ts` runs the packages
// that can be installed.
const PROMPT = [11, 12, 13];
let bench: ServiceBench;
let gateway: Gateway;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 60);
});
afterAll(() => bench?.close());
afterEach(async () => {
  await gateway.close();
  await bench.engine.close();
  expect(await bench.findings()).toEqual([]);
});

async function begin(dialect: 'sglang' | 'vllm'): Promise<void> {
  // A probe replaces the registered capabilities by the description of the engine at some time: both are the same.
  const maxModelTokens = 4_096;
  await bench.begin(() => 8_000, 1, dialect, { maxModelTokens });
  await bench.register({ dialect, model: 'simulated', capabilities: { maxModelTokens } });
  gateway = await Gateway.start(bench.prefix, bench.pool);
}

interface Recorded {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: object;
}

const readRecorded = (trainer: string): Record<string, Recorded> =>
  JSON.parse(readFileSync(`test/clients/recorded/${trainer}.json`, 'utf8')).requests;

/** Sends a recorded request. @param engine address that replaces `{engine}` in the body */
function send({ method, path, headers, body }: Recorded, engine = ''): Promise<Reply> {
  if (method === 'GET') return gateway.get(path, headers);
  return gateway.post(path, body === undefined ? '' : JSON.stringify(body).replace('{engine}', engine), headers);
}

describe('slime', () => {
  const recorded = readRecorded('slime');
  beforeEach(() => begin('sglang'));

  it('reads tokens, log probabilities, finish reason and weight version of /generate', async () => {
    const { status, body } = await send(recorded.generate!);
    const { output_token_logprobs: entries, finish_reason: reason, weight_version: version } = body.meta_info;
    expect([status, reason, version]).toEqual([200, { type: 'length', length: 6 }, '0']);
    expect(entries.map(([, id]: [number, number]) => id)).toEqual(body.output_ids);
    expect(typeof body.text).toBe('string');
  });

  it('reads a stream whose chunks have all tokens so far', async () => {
    const events = parseEvents((await send(recorded.stream!)).body) as Reply['body'][];
    expect(events.at(-1)).toBeNull();
    const last = events.at(-2).meta_info;
    expect([last.output_token_logprobs.length, last.finish_reason]).toEqual([6, { type: 'length', length: 6 }]);
  });

  it('aborts the requests at the workers of the list, waits until none runs, and continues with their tokens', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 2 });
    const running = send(recorded.generate!);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(2);
    const { body: list } = await send(recorded.workers!);
    expect(list.workers.map(({ url }: { url: string }) => url)).toEqual([gateway.url]);
    expect((await send(recorded.abort!)).status).toBe(200);
    const partial = (await running).body;
    expect([partial.meta_info.finish_reason.type, partial.output_ids.length]).toEqual(['abort', 2]);
    await expect.poll(async () => (await send(recorded.loads!)).body.loads[0].num_total_reqs).toBe(0);
    expect((await send(recorded.continue!)).body.meta_info.completion_tokens).toBe(4);
  });

  it('registers an engine', async () => {
    const engine = await startEngine('sglang', { speed: 1, lengths: { name: 'test', getLength: () => 8_000 } });
    expect((await send(recorded.register!, engine.url)).status).toBe(202);
    const removed = await fetch(`${gateway.url}/workers/${encodeURIComponent(engine.url)}`, { method: 'DELETE' });
    expect(removed.status).toBe(202);
    await engine.close();
  });

  it('changes the weights while generation is paused', async () => {
    const { health, pause, flush, update, version, resume } = recorded;
    for (const request of [health!, pause!, flush!, update!]) {
      expect([request.path, (await send(request)).status]).toEqual([request.path, 200]);
    }
    expect((await send(version!)).body.weight_version).toBe('2');
    expect((await send(resume!)).status).toBe(200);
    expect((await send(recorded.generate!)).body.meta_info.weight_version).toBe('2');
  });
});

describe('miles', () => {
  beforeEach(() => begin('sglang'));

  it('adds, lists and removes an engine by the older routes', async () => {
    const engine = await startEngine('sglang', { speed: 1, lengths: { name: 'test', getLength: () => 8_000 } });
    const query = `url=${encodeURIComponent(engine.url)}`;
    expect((await gateway.post(`/add_worker?${query}`, {})).body.status).toBe('success');
    expect((await gateway.get('/list_workers')).body.urls).toEqual([gateway.url]);
    expect((await gateway.post(`/remove_worker?${query}`, {})).status).toBe(200);
    await engine.close();
  });

  it('begins a session, sends its turns below it, reads its tokens, and deletes it', async () => {
    const { session_id: id } = (await gateway.post('/sessions', {})).body;
    const turn = { input_ids: PROMPT, sampling_params: { max_new_tokens: 3 }, return_logprob: true };
    const { body } = await gateway.post(`/sessions/${id}/generate`, turn);
    const { branches } = (await gateway.get(`/sessions/${id}/trajectory`)).body;
    expect(branches[0].token_ids).toEqual([...PROMPT, ...body.output_ids]);
    // miles reads the status of the answer, and the client of rllm the number of deleted sessions.
    const deleted = await fetch(`${gateway.url}/sessions/${id}`, { method: 'DELETE' });
    expect([deleted.status, await deleted.json()]).toEqual([200, { deleted: 1 }]);
  });

  it('aborts by a prefix of ids', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 1 });
    const body = { rid: 'adapter-1--7', input_ids: PROMPT, sampling_params: { max_new_tokens: 9 } };
    const running = gateway.post('/generate', body);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(1);
    await gateway.post('/abort_request', { rid: 'adapter-1--', prefix: true });
    expect((await running).body.meta_info.finish_reason.type).toBe('abort');
  });
});

describe('SkyRL and prime-rl', () => {
  beforeEach(() => begin('vllm'));

  it('abort by closing the connection', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 1 });
    const body = { token_ids: PROMPT, sampling_params: { max_tokens: 5, logprobs: 0 } };
    const sent = open(`${gateway.url}/inference/v1/generate`, body);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(1);
    sent.destroy();
    await expect.poll(() => gateway.metric('gateway_generations_running')).toBe(0);
    await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
  });

  it('prime-rl waits for the servers, updates weights while generation is paused, and loads an adapter', async () => {
    const { models, ...others } = readRecorded('prime-rl');
    expect((await send(models!)).body.data).toMatchObject([{ id: 'simulated', max_model_len: 4_096 }]);
    for (const request of Object.values(others)) {
      expect([request.path, (await send(request)).status]).toEqual([request.path, 200]);
    }
  });
});
