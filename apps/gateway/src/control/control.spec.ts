import type { PauseMode } from '@broomwagon/contracts';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inEngine, inject, startEngine, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, post, type Reply } from '../../../../test/system/gateway';
import { ServiceBench } from '../../../../test/system/service-bench';

/** Tokens of a response that takes seconds, until {@link finish}. */
const LONG = 150;
const FAST = 100;
const generate = (maxNewTokens: number, more: object = {}) => ({
  input_ids: [11, 12, 13],
  sampling_params: { max_new_tokens: maxNewTokens, sampling_seed: 7 },
  ...more,
});

let bench: ServiceBench;
let gateway: Gateway;
let second: Awaited<ReturnType<typeof startEngine>>;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 30);
});
afterAll(() => bench?.close());
afterEach(async () => {
  await gateway.close();
  await second.close();
  await bench.end();
  // A commit moves servers to their new states in its own time.
  await expect.poll(() => bench.findings()).toEqual([]);
});

/** Two engines of one dialect with the given numbers of processes; the first also in `bench`. */
async function startPool(dialect: 'sglang' | 'vllm', ranks = 1, settings = {}, pauseModes: PauseMode[] = []) {
  await bench.begin(() => 8_000, 2, dialect);
  second = await startEngine(dialect, { speed: 2, ranks, lengths: { name: 'test', getLength: () => 8_000 } });
  // Without pause modes only the gateway pauses or resumes the engines.
  const engine = { dialect, model: 'simulated', capabilities: { pauseModes } };
  await bench.register(engine);
  await bench.register({ ...engine, serverId: 's2', instanceId: 'i2', endpoint: second.url });
  gateway = await Gateway.start(bench.prefix, bench.pool, settings);
}
/** Lets running responses end soon. */
const finish = () => {
  for (const engine of [bench.engine, second]) engine.setSpeed(FAST);
};
const urls = () => [bench.engine.url, second.url];
const listServerIds = (reply: Reply) => reply.body.engines.map((engine: { server_id: string }) => engine.server_id);
const isPoolPaused = async () => (await bench.client.call(bench.pool, 'lb.status', {})).paused;
const weights = () => bench.client.call(bench.pool, 'weights.status', {});
const readStates = async () => {
  const { servers } = await bench.client.call(bench.pool, 'server.list', {});
  return Object.fromEntries(servers.map(({ serverId, state, weightVersion }) => [serverId, [state, weightVersion]]));
};
const fetchControls = async (url: string) => (await fetchState(url)).controls;
const madeOn = async (url: string) => Math.max(0, ...(await fetchState(url)).table.map(({ made }) => made));

describe('a call for all engines of SGLang', () => {
  beforeEach(() => startPool('sglang'));

  it('is made at each of them with the body as it came, and answered as by one', async () => {
    const body = '{"tags": ["kv_cache"], "large": 12345678901234567890}';
    const reply = await gateway.post('/release_memory_occupation', body);
    expect([reply.status, reply.body.success, listServerIds(reply)]).toEqual([200, true, ['s1', 's2']]);
    for (const url of urls()) {
      expect(await fetchControls(url)).toEqual([{ path: '/release_memory_occupation', body: JSON.parse(body) }]);
    }
    for (const reply of [await gateway.get('/flush_cache'), await gateway.post('/flush_cache', '')]) {
      expect([reply.status, reply.body.engines.map(({ body: text }: Reply) => text)]).toEqual([
        200,
        ['Cache flushed.', 'Cache flushed.'],
      ]);
    }
  });

  it('shows which engine failed, and that the others succeeded', async () => {
    await second.close();
    const { status, body } = await gateway.post('/release_memory_occupation', {});
    expect([status, body.success, body.error.type, body.error.retryable]).toEqual([502, false, 'ENGINE_ERROR', true]);
    expect(body.engines).toMatchObject([
      { server_id: 's1', status: 200, body: { success: true } },
      { server_id: 's2', status: null, error: { code: 'ENGINE_UNREACHABLE' } },
    ]);
    expect(await fetchControls(bench.engine.url)).toHaveLength(1);
    const refused = await gateway.post('/weights_checker', {});
    expect([refused.status, refused.body.engines[0].status]).toEqual([502, 404]);
    expect((await gateway.get('/metrics')).body).toMatch(/gateway_control_calls_total\{[^}]*outcome="failed"[^}]*\} 2/);
  });

  it('leaves out engines whose servers have failed', async () => {
    const { epoch } = await bench.client.call(bench.pool, 'server.get', { serverId: 's2' });
    await bench.client.call(bench.pool, 'server.fence', { serverId: 's2', epoch });
    const { status, body } = await gateway.post('/pull_weights', { target_version: 1 });
    expect([status, body.engines]).toMatchObject([200, [{ status: 200 }, { skipped: 'the server is failed' }]]);
    expect(await fetchControls(second.url)).toEqual([]);
  });

  it('needs the role trainer, and engines of the dialect', async () => {
    const other = await gateway.post('/wake_up', {});
    expect([other.status, other.body.error.type]).toEqual([503, 'NO_SERVER_AVAILABLE']);
    expect([(await gateway.post('/pause', {})).status, await isPoolPaused()]).toEqual([503, false]);
    const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, bench.prefix);
    const pauseAs = async (role: 'client' | 'trainer' | 'viewer' | 'operator') => {
      const { token } = await store.create({ name: role, role });
      const { status } = await guarded.post('/pause_generation', {}, { authorization: `Bearer ${token}` });
      return [status, await isPoolPaused()];
    };
    expect(await pauseAs('client')).toEqual([403, false]);
    expect(await pauseAs('viewer')).toEqual([403, false]);
    expect(await pauseAs('trainer')).toEqual([200, true]);
    expect(await pauseAs('operator')).toEqual([200, true]);
    await guarded.close();
    redis.disconnect();
  });

  it('gives each engine a first rank after the ranks of the engine before', async () => {
    const group = { master_address: 'a', master_port: 1, rank_offset: 1, world_size: 3, group_name: 'g' };
    expect((await gateway.post('/init_weights_update_group', group)).status).toBe(200);
    const ranks = await Promise.all(urls().map(async (url) => (await fetchControls(url))[0]!.body.rank_offset));
    expect(ranks).toEqual([1, 2]);
    for (const world_size of [2, 'a', undefined]) {
      const reply = await gateway.post('/init_weights_update_group', { ...group, world_size });
      expect([reply.status, reply.body.error.param]).toEqual([400, 'world_size']);
    }
    const wrong = await gateway.post('/init_weights_update_group', { ...group, rank_offset: -1 });
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'rank_offset']);
    expect(await fetchControls(second.url)).toHaveLength(1);
  });
});

describe('a pause', () => {
  it.each(['in_place', 'retract'])('%s: responses stand still for longer than a stall, and continue', async (mode) => {
    await startPool('sglang', 1, { engineStallTimeoutMs: 1_500 });
    const reply = gateway.post('/generate', generate(LONG));
    await expect.poll(async () => Math.max(...(await Promise.all(urls().map(madeOn))))).toBeGreaterThan(5);
    const paused = await gateway.post('/pause_generation', { mode });
    expect([paused.status, paused.body.status, await isPoolPaused()]).toEqual([200, 'ok', true]);
    const late = gateway.post('/generate', generate(3));
    await expect.poll(async () => (await gateway.get('/v1/loads')).body.loads[0].num_waiting_reqs).toBe(1);
    const made = () => gateway.metric('tokens_generated_total');
    // Tokens for a client that does not stream are read in batches, of at most 100 ms each.
    let before = -1;
    const isSettled = async () => before === (before = await made());
    await expect.poll(isSettled, { interval: 500 }).toBe(true);
    // The pause takes as long as two deadlines of silence.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect([await made(), await gateway.metric('gateway_generations_running')]).toEqual([before, 2]);
    finish();
    expect((await gateway.post('/continue_generation', {})).status).toBe(200);
    const { status, body, headers } = await reply;
    expect([status, body.output_ids.length, headers['x-broomwagon-attempts']]).toEqual([200, LONG, '1']);
    expect([(await late).status, await isPoolPaused()]).toEqual([200, false]);
  });

  it.each([
    ['ends responses with their tokens', {}, 'abort'],
    ['lets them continue afterwards if the client asks for it', { 'x-broomwagon-on-engine-abort': 'resume' }, 'length'],
  ])('abort %s', async (_, headers: Record<string, string>, type) => {
    await startPool('sglang');
    const reply = gateway.post('/generate', generate(LONG), headers);
    await expect.poll(async () => Math.max(...(await Promise.all(urls().map(madeOn))))).toBeGreaterThan(5);
    await gateway.post('/pause_generation', {});
    await Promise.all(urls().map((url) => expect.poll(() => inEngine(url)).toBe(0)));
    finish();
    await gateway.post('/continue_generation', {});
    const { body } = await reply;
    expect(body.meta_info.finish_reason.type).toBe(type);
  });
});

it('undoes a pause that an engine has refused, unless the pool was paused before', async () => {
  await startPool('sglang');
  await second.close();
  const pause = async () => {
    const { status, body } = await gateway.post('/pause_generation', { mode: 'in_place' });
    expect([status, body.engines.map((engine: Reply) => engine.status)]).toEqual([502, [200, null]]);
    return isPoolPaused();
  };
  expect(await pause()).toBe(false);
  expect((await gateway.post('/generate', generate(3))).body.output_ids).toHaveLength(3);
  await bench.client.call(bench.pool, 'pool.pause', {});
  expect(await pause()).toBe(true);
});

it('ends a pause that its trainer does not end: pool and engines continue', async () => {
  await startPool('sglang', 1, { pauseDeadlineMs: 1_000 }, ['keep']);
  const reply = gateway.post('/generate', generate(LONG));
  await expect.poll(async () => Math.max(...(await Promise.all(urls().map(madeOn))))).toBeGreaterThan(5);
  const ended = await bench.metric('pauses_overdue_total');
  expect((await gateway.post('/pause_generation', { mode: 'in_place' })).status).toBe(200);
  finish();
  const { status, body, headers } = await reply;
  expect([status, body.output_ids.length, headers['x-broomwagon-attempts']]).toEqual([200, LONG, '1']);
  expect((await gateway.post('/generate', generate(3))).status).toBe(200);
  expect([await isPoolPaused(), (await bench.metric('pauses_overdue_total')) - ended]).toEqual([false, 1]);
});

describe('new weights with a version', () => {
  it('of two calls: the second waits while requests of the first run, and both are made', async () => {
    await startPool('sglang');
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
    const reply = gateway.post('/generate', generate(LONG));
    await expect.poll(async () => Math.max(...(await Promise.all(urls().map(madeOn))))).toBeGreaterThan(2);
    const update = () =>
      gateway.post(
        '/update_weights_from_disk',
        { model_path: '/m', weight_version: '2' },
        { 'x-broomwagon-weight-mode': 'wait' },
      );
    const first = update();
    await expect.poll(async () => (await weights()).sync?.state).toBe('begun');
    const second = update();
    // A second call that does not wait is made within this time.
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await Promise.all(urls().map(fetchControls))).toEqual([[], []]);
    await gateway.post('/abort_request', { abort_all: true });
    expect([(await reply).status, (await first).status, (await second).status]).toEqual([200, 200, 200]);
    for (const url of urls()) expect(await fetchControls(url)).toHaveLength(2);
    expect([(await weights()).version, (await weights()).sync]).toEqual([2, undefined]);
  });

  it('in a paused pool: are committed when it continues, and every lease sees them', async () => {
    await startPool('sglang');
    const reply = gateway.post('/generate', generate(LONG));
    await expect.poll(async () => Math.max(...(await Promise.all(urls().map(madeOn))))).toBeGreaterThan(5);
    await gateway.post('/pause_generation', { mode: 'in_place' });
    for (const names of [['a'], ['b']]) {
      const bucket = await gateway.post('/update_weights_from_distributed', { names, weight_version: '3' });
      expect([bucket.status, bucket.body.success]).toEqual([200, true]);
      expect((await weights()).sync).toMatchObject({ version: 3, mode: 'keep', state: 'begun' });
    }
    expect((await gateway.get('/get_weight_version')).body.weight_version).toBe('3');
    await gateway.post('/continue_generation', {});
    expect(await weights()).toMatchObject({ version: 3 });
    expect((await weights()).sync).toBeUndefined();
    finish();
    expect((await reply).body.output_ids).toHaveLength(LONG);
    // An engine without salts whose running request holds its prefix cache takes no lease before the cache is reset.
    await expect.poll(readStates, { timeout: 10_000 }).toEqual({ s1: ['ready', 3], s2: ['ready', 3] });
    const { headers } = await gateway.post('/generate', generate(3), { 'x-broomwagon-weight-version': '3' });
    expect(headers['x-broomwagon-weight-versions']).toBe('3:0-3');
  });

  it.each([
    ['that every engine has refused, also to a lower version', {}, '2'],
    ['that the engines have', { names: ['a'] }, '4'],
  ])('in a paused pool: may be corrected after an update %s', async (_, body, version) => {
    await startPool('sglang');
    await gateway.post('/pause_generation', {});
    const update = (more: object, path: string) => gateway.post(path, more);
    const path = 'names' in body ? '/update_weights_from_distributed' : '/update_weights_from_disk';
    await update({ ...body, weight_version: '3' }, path);
    expect((await weights()).sync).toMatchObject({ version: 3 });
    const corrected = { names: ['a'], weight_version: version };
    const calls = Array.from({ length: 4 }, () => update(corrected, '/update_weights_from_distributed'));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await weights()).sync).toMatchObject({ version: Number(version), state: 'begun' });
    expect((await gateway.post('/continue_generation', {})).status).toBe(200);
    expect(await weights()).toMatchObject({ version: Number(version) });
    await expect.poll(readStates).toEqual({ s1: ['ready', Number(version)], s2: ['ready', Number(version)] });
  });

  it('in a paused pool: are rolled back when it continues, if every engine has refused them', async () => {
    await startPool('sglang');
    const update = (body: object) => gateway.post('/update_weights_from_disk', body);
    await gateway.post('/pause_generation', {});
    expect((await update({ weight_version: '5' })).status).toBe(400);
    expect((await weights()).sync).toMatchObject({ version: 5, state: 'begun', confirmedServers: 0 });
    expect((await gateway.post('/continue_generation', {})).status).toBe(200);
    expect(await weights()).not.toHaveProperty('version');
    expect((await gateway.post('/generate', generate(3))).status).toBe(200);
    expect((await update({ model_path: '/m', weight_version: '4' })).status).toBe(200);
    await expect.poll(readStates).toEqual({ s1: ['ready', 4], s2: ['ready', 4] });
  });

  it.each([
    ['abort', {}, ['0', '2']],
    ['wait', {}, ['0']],
    // Requests that would lose their tokens run on.
    ['abort', { regex: 'a*' }, ['0']],
  ])(
    'in a pool that is not paused, mode %s: a change of the pool around the call; %j',
    async (mode, more, expected) => {
      await startPool('sglang');
      const { sampling_params, ...others } = generate(LONG);
      const reply = gateway.post('/generate', { ...others, sampling_params: { ...sampling_params, ...more } });
      await expect.poll(async () => Math.max(...(await Promise.all(urls().map(madeOn))))).toBeGreaterThan(5);
      const body = { model_path: '/m', weight_version: '2' };
      const updating = gateway.post('/update_weights_from_disk', body, { 'x-broomwagon-weight-mode': mode });
      // A change that stops no request is made when the response has ended.
      if (expected.length === 1) await expect.poll(async () => (await weights()).sync?.state).toBe('begun');
      else await updating;
      finish();
      const update = await updating;
      expect([update.status, update.body.success]).toEqual([200, true]);
      expect(await weights()).toMatchObject({ version: 2 });
      const versions = (await reply).body.meta_info.weight_versions.map(({ version }: { version: string }) => version);
      expect(versions).toEqual(expected);
    },
  );

  it('keep an engine that failed out of the pool', async () => {
    await startPool('sglang');
    await second.close();
    const { status } = await gateway.post('/update_weights_from_disk', { model_path: '/m', weight_version: '2' });
    expect([status, (await weights()).version]).toEqual([502, 2]);
    const { s1, s2 } = await readStates();
    expect([s1, s2![0]]).toEqual([['ready', 2], expect.not.stringMatching('ready')]);
    const stale = await gateway.post('/update_weights_from_disk', { model_path: '/m', weight_version: '1' });
    expect([stale.status, stale.body.error.type]).toEqual([409, 'WEIGHT_VERSION_STALE']);
  });

  it('leave the weights unknown of engines that failed in the middle of a load', async () => {
    await startPool('sglang');
    const update = (path: string, body: object) => gateway.post(path, body);
    // The simulator refuses a body without weights.
    expect((await update('/update_weights_from_tensor', { weight_version: '0' })).status).toBe(400);
    expect((await weights()).sync).toBeUndefined();
    await expect.poll(readStates).toMatchObject({ s1: ['quarantined', 0], s2: ['quarantined', 0] });
    await update('/update_weights_from_disk', { model_path: '/m', weight_version: '0' });
    await expect.poll(readStates).toEqual({ s1: ['ready', 0], s2: ['ready', 0] });
    expect((await update('/update_weights_from_disk', { weight_version: '1' })).status, 'rolled back').toBe(400);
    await expect.poll(readStates).toEqual({ s1: ['ready', 0], s2: ['ready', 0] });
  });

  it('by the calls of vLLM: each step is made, and the last one sets the version', async () => {
    await startPool('vllm', 2);
    const { body: size } = await gateway.get('/get_world_size');
    expect(size.world_size).toBe(3);
    const init_info = { master_address: 'a', master_port: 1, rank_offset: 1, world_size: 4 };
    expect((await gateway.post('/init_weight_transfer_engine', { init_info })).status).toBe(200);
    expect((await gateway.post('/pause?mode=keep&clear_cache=false', '')).status).toBe(200);
    expect((await gateway.get('/is_paused')).body.is_paused).toBe(true);
    await gateway.post('/start_weight_update', {});
    await gateway.post('/update_weights', { update_info: {} });
    await gateway.post('/finish_weight_update', { weight_version: '7' });
    expect((await gateway.post('/resume', '')).status).toBe(200);
    expect([(await weights()).version, await isPoolPaused()]).toEqual([7, false]);
    expect((await gateway.get('/weight_info')).body.weight_version).toBe('7');
    expect((await gateway.post('/collective_rpc', { method: 'm' })).body.results).toEqual([null, null]);
    const paths = ['/init_weight_transfer_engine', '/start_weight_update', '/update_weights', '/finish_weight_update'];
    const calls = await Promise.all(urls().map(fetchControls));
    for (const list of calls) expect(list.map(({ path }) => path)).toEqual([...paths, '/collective_rpc']);
    const offsets = calls.map(([first]) => (first!.body.init_info as { rank_offset: number }).rank_offset);
    expect(offsets).toEqual([1, 2]);
    const named = await gateway.post('/update_weights', { weight_dir: '/w' }, { 'x-broomwagon-weight-version': '8' });
    expect([named.status, (await weights()).version]).toEqual([200, 8]);
  });

  it('by the calls of AReaL on vLLM, and of the broadcaster of prime-rl', async () => {
    await startPool('vllm');
    const pauseEnd = async () => (await bench.client.call(bench.pool, 'lb.status', {})).pausedUntilMs;
    const group = { master_address: 'a', master_port: '1', rank_offset: 1, world_size: 3, backend: 'nccl' };
    const broadcaster = { host: 'a', port: 1, rank_offset: 0, inference_world_size: 2, timeout: 9 };
    const calls: [string, object][] = [
      ['/init_broadcaster', broadcaster],
      ['/areal_init_weights_update_group', group],
      ['/areal_set_update_weight_meta', { names: ['w'], dtypes: ['bfloat16'], shapes: [[1]], group_name: 'g' }],
      ['/areal_update_weights', { model_path: '/m' }],
      ['/areal_set_update_weight_meta_lora', { lora_name: 'l' }],
      ['/areal_update_weights_lora', { lora_model_path: '/l' }],
      ['/areal_update_weights_lora_xccl', {}],
    ];
    expect((await gateway.post('/pause', '')).status).toBe(200);
    expect(await pauseEnd()).toBeGreaterThan(0);
    expect((await gateway.post('/areal_pause_generation', '')).body.success).toBe(true);
    // Only the trainer can end this pause: the load-balancer must not send requests to the engines before.
    expect(await pauseEnd()).toBeUndefined();
    expect([await isPoolPaused(), (await gateway.get('/is_paused')).body.is_paused]).toEqual([true, true]);
    for (const [path, body] of calls) expect((await gateway.post(path, body)).status, path).toBe(200);
    const version = { 'x-broomwagon-weight-version': '7' };
    expect((await gateway.post('/areal_update_weights_xccl', {}, version)).status).toBe(200);
    expect((await gateway.post('/areal_continue_generation', '')).body.success).toBe(true);
    expect([(await weights()).version, await isPoolPaused()]).toEqual([7, false]);
    expect((await gateway.get('/is_paused')).body.is_paused).toBe(false);
    const made = await Promise.all(urls().map(fetchControls));
    for (const [index, list] of made.entries()) {
      expect(list.map(({ path }) => path)).toEqual([...calls.map(([path]) => path), '/areal_update_weights_xccl']);
      expect(list.slice(0, 2).map(({ body }) => body.rank_offset)).toEqual([index, 1 + index]);
      expect(list[2]!.body).toEqual(calls[2]![1]);
    }
  });

  it('are refused with an invalid version or mode in a header, and passed on with any name in the body', async () => {
    await startPool('sglang');
    const send = (headers: Record<string, string>, version?: string) =>
      gateway.post('/update_weights_from_disk', { model_path: '/m', weight_version: version }, headers);
    expect((await send({ 'x-broomwagon-weight-version': 'new' })).body.error.param).toBe('x-broomwagon-weight-version');
    expect((await send({ 'x-broomwagon-weight-mode': 'keep' }, '1')).body.error.param).toBe('x-broomwagon-weight-mode');
    expect(await fetchControls(second.url)).toEqual([]);
    expect((await send({}, 'step-5')).status).toBe(200);
    expect(await weights()).not.toHaveProperty('version');
    expect((await post(`${gateway.url}/update_weights_from_disk`, '[]')).status).toBe(400);
  });
});
