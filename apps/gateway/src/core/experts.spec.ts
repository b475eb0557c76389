import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { inject, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, post, type Reply } from '../../../../test/system/gateway';
import { generate, PROMPT, useGateway } from '../../../../test/system/gateway-bench';

/** Long enough for another engine to start meanwhile. */
const TOKENS = 800;
/** Tokens of responses that no other engine continues. */
const FEW_TOKENS = 60;
const SHAPE = { layers: 2, perToken: 3 };
const NUMBERS = SHAPE.layers * SHAPE.perToken;
const FIRST = { experts: { ...SHAPE, engine: 1 } };
const SECOND = { experts: { ...SHAPE, engine: 2 } };

/** The engine that has reported each row. Fails unless the numbers belong to the rows from `start` on. */
function parseEngines(numbers: Int32Array | Uint16Array, start = 0): number[] {
  expect(numbers.length % NUMBERS).toBe(0);
  return Array.from({ length: numbers.length / NUMBERS }, (_, row) => {
    const own = [...numbers.subarray(row * NUMBERS, (row + 1) * NUMBERS)];
    expect(new Set(own).size).toBe(1);
    expect(own[0]! >> 8).toBe((start + row) & (numbers.BYTES_PER_ELEMENT === 2 ? 0xff : 0xffff_ff));
    return own[0]! & 0xff;
  });
}

/** The engine of each row, with the check of slime: there is a row for each token from `start` on but the last. */
function parseRows({ body }: Reply, start = 0): number[] {
  const { routed_experts: text, prompt_tokens: prompt, completion_tokens: made } = body.meta_info;
  const bytes = Buffer.from(text as string, 'base64');
  const rows = parseEngines(new Int32Array(new Uint8Array(bytes).buffer), start);
  expect(rows.length).toBe(prompt + made - 1 - start);
  return rows;
}

const counted = (rows: number[]): Record<string, number> =>
  Object.fromEntries([...new Set(rows)].map((engine) => [engine, rows.filter((row) => row === engine).length]));

describe('routed experts of SGLang', () => {
  const system = useGateway(8, { engine: FIRST });
  const asked = (more: object = {}) => generate(TOKENS, { return_routed_experts: true, ...more });
  const send = async (isStream: boolean, more: object = {}, headers = {}): Promise<Reply> => {
    const reply = await system.gateway.post('/generate', asked({ ...more, stream: isStream }), headers);
    if (!isStream) return reply;
    const events = parseEvents(reply.body).filter((event) => event !== null) as Reply['body'][];
    // Only the last chunk has the experts, as in a stream of the engine.
    expect(events.filter(({ meta_info: meta }) => meta.routed_experts).length).toBe(1);
    return { ...reply, body: events.at(-1) };
  };
  const startSecond = async () => {
    await system.startSecond(SECOND);
    await system.registerSecond();
  };
  const drain = (serverId: string) =>
    system.bench.client.call(system.bench.pool, 'server.drain', { serverId, deadlineMs: 0 });

  it.each([false, true])(
    'of a response that was never resumed are the rows of the engine: stream %s',
    async (isStream) => {
      await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
      await startSecond();
      const own = await post(`${system.second.url}/generate`, asked());
      const reply = await send(isStream);
      expect(reply.body.meta_info.routed_experts).toBe(own.body.meta_info.routed_experts);
      expect(counted(parseRows(reply))).toEqual({ 2: PROMPT.length + TOKENS - 1 });
      const later = await send(isStream, { routed_experts_start_len: 2 });
      expect(parseRows(later, 2).length).toBe(PROMPT.length + TOKENS - 3);
    },
  );

  it.each([false, true])('of a drained engine are kept, and the rest is added: stream %s', async (isStream) => {
    const reply = send(isStream, { routed_experts_start_len: 1 });
    await system.hasTokens();
    await startSecond();
    await drain('s1');
    const rows = parseRows(await reply, 1);
    const { 1: first, 2: second } = counted(rows);
    expect(rows).toEqual([...rows].toSorted());
    expect(first).toBeGreaterThan(5);
    expect(second).toBeGreaterThan(5);
    const whole = await system.uncut(TOKENS);
    expect((await reply).body.meta_info.completion_tokens).toBe(whole.body.meta_info.completion_tokens);
  });

  it('of a broken stream are continued by the next attempt', async () => {
    await inject(system.bench.engine.url, { kind: 'close-mid-stream', afterTokens: 6 });
    const reply = send(false);
    // The only engine may continue the response before another one is registered.
    await expect.poll(() => system.metric('tokens_generated_total')).toBeGreaterThanOrEqual(6);
    await startSecond();
    expect((await reply).headers['x-broomwagon-attempts']).not.toBe('1');
    expect(parseRows(await reply).length).toBe(PROMPT.length + TOKENS - 1);
  });

  it('of a response that was resumed twice are the rows of its engines, in order', async () => {
    const reply = send(false, {}, { 'x-broomwagon-on-engine-abort': 'resume' });
    await system.hasTokens();
    // The trainer aborts on the engine itself. Rows that the engine has reported are kept.
    await post(`${system.bench.engine.url}/abort_request`, { abort_all: true });
    await expect.poll(async () => (await fetchState(system.bench.engine.url)).requests.received).toBe(2);
    await system.startSecond({ ...SECOND, speed: 1 });
    await system.registerSecond();
    await drain('s1');
    await expect.poll(async () => (await fetchState(system.second.url)).requests.received).toBe(1);
    const { url } = system.second;
    await expect
      .poll(async () => Math.max(0, ...(await fetchState(url)).table.map((row) => row.made)))
      .toBeGreaterThan(5);
    await post(`${url}/abort_request`, { abort_all: true });
    system.second.setSpeed(20);
    const rows = parseRows(await reply);
    expect(rows).toEqual([...rows].toSorted());
    expect(Object.keys(counted(rows))).toEqual(['1', '2']);
    expect(Number((await reply).headers['x-broomwagon-attempts'])).toBeGreaterThan(3);
  });

  it('come with a response that the client aborts', async () => {
    const reply = send(false, { rid: 'r' });
    await system.hasTokens();
    await system.gateway.post('/abort_request', { rid: 'r' });
    expect((await reply).body.meta_info.finish_reason.type).toBe('abort');
    expect(counted(parseRows(await reply))).toEqual({ 1: PROMPT.length + (await reply).body.output_ids.length - 1 });
  });

  it('of 67 MB are neither parsed nor written as JSON', async () => {
    let event = '';
    const engine = createServer((request, response) => {
      request.resume().on('end', () => {
        const isGenerate = request.url === '/generate';
        response.writeHead(200, { 'content-type': isGenerate ? 'text/event-stream' : 'text/plain' });
        if (!isGenerate) return void response.end();
        response.end(event);
      });
    });
    await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
    await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
    await system.bench.register({ serverId: 's3', instanceId: 'i3', endpoint, dialect: 'sglang', probe: false });
    // Made last, because it blocks the event loop, which the services of this test share.
    const text = Buffer.alloc(48 * 1_048_576, 7).toString('base64');
    const meta = { finish_reason: { type: 'stop' }, completion_tokens: 1, prompt_tokens: 9, routed_experts: text };
    event = `data: ${JSON.stringify({ text: 'x', output_ids: [5], meta_info: meta })}\n\ndata: [DONE]\n\n`;
    const reply = Buffer.concat(await fetchBytes(`${system.gateway.url}/generate`, asked()));
    const at = reply.indexOf('"routed_experts":"') + '"routed_experts":"'.length;
    expect(reply.subarray(at, at + text.length).equals(Buffer.from(text))).toBe(true);
    engine.closeAllConnections();
    engine.close();
  });

  /** Reads an answer; meanwhile nothing long is parsed or written as JSON, or made a text. */
  async function fetchBytes(url: string, body: object): Promise<Buffer[]> {
    let longest = 0;
    const parse = JSON.parse;
    const stringify = JSON.stringify;
    const spies = [
      vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
        longest = Math.max(longest, String(text).length);
        return parse(text, reviver) as unknown;
      }),
      vi.spyOn(JSON, 'stringify').mockImplementation((value, ...rest) => {
        const text = stringify(value, ...(rest as [])) as string | undefined;
        longest = Math.max(longest, text?.length ?? 0);
        return text!;
      }),
    ];
    const response = await fetch(url, { method: 'POST', body: stringify(body) });
    const parts: Buffer[] = [];
    for await (const part of response.body!) parts.push(Buffer.from(part as Uint8Array));
    for (const spy of spies) spy.mockRestore();
    expect([response.status, longest < 1_048_576]).toEqual([200, true]);
    return parts;
  }
});

describe('routed experts of vLLM', () => {
  const system = useGateway(3, { dialect: 'vllm', engine: { ...FIRST, scaleOut: true } });
  const body = (more: object = {}) => ({
    token_ids: PROMPT,
    model: 'simulated',
    sampling_params: { max_tokens: TOKENS, seed: 7, logprobs: 0 },
    ...more,
  });
  const toNumbers = (data: Buffer) => new Uint16Array(new Uint8Array(data).buffer);

  it('reach SkyRL as data and shape, also the rows of a drained engine', async () => {
    const reply = system.gateway.post('/skyrl/v1/generate', body());
    await system.hasTokens();
    await system.startSecond({ ...SECOND, scaleOut: true });
    await system.registerSecond();
    await system.bench.client.call(system.bench.pool, 'server.drain', { serverId: 's1', deadlineMs: 0 });
    const [choice] = (await reply).body.choices;
    const { data, shape, dtype } = choice.routed_experts;
    expect([shape, dtype]).toEqual([[PROMPT.length + TOKENS - 1, SHAPE.layers, SHAPE.perToken], 'uint16']);
    const rows = parseEngines(toNumbers(Buffer.from(data, 'base64')));
    expect(rows).toEqual([...rows].toSorted());
    expect(Object.keys(counted(rows))).toEqual(['1', '2']);
    const uncut = await system.gateway.post('/inference/v1/generate', body());
    expect(choice.token_ids).toEqual(uncut.body.choices[0].token_ids);
    expect(choice.logprobs.content.length).toBe(TOKENS);
    expect(uncut.body.choices[0].routed_experts).toBeUndefined();
  });

  it.each([false, true])('are a file for clients of vLLM that ask for them: stream %s', async (stream) => {
    const sampling_params = { max_tokens: FEW_TOKENS, seed: 7, logprobs: 0 };
    const asked = body({ return_routed_experts: true, stream, sampling_params });
    const { body: answer } = await system.gateway.post('/inference/v1/generate', asked);
    const last = (stream ? parseEvents(answer).at(-2) : answer) as typeof answer;
    const file = Buffer.from(last.choices[0].routed_experts, 'base64');
    expect(file.toString('latin1', 1, 6)).toBe('NUMPY');
    const rows = PROMPT.length + FEW_TOKENS - 1;
    expect(file.toString()).toContain(`'shape': (${rows}, ${SHAPE.layers}, ${SHAPE.perToken})`);
    expect(counted(parseEngines(toNumbers(file.subarray(128))))).toEqual({ 1: rows });
  });
});
