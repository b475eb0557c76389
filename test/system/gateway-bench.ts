import type { EngineDialect, RequestOf } from '@broomwagon/contracts';
import { waitUntil } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { GatewayConfig } from '../../apps/gateway/src/gateway.config';
import type { LoadBalancerConfig } from '../../apps/load-balancer/src/load-balancer.config';
import type { SimulatorOptions } from '../../lab/engine-simulator/src/simulator';
import { inEngine, inject, startEngine, fetchState } from '../../lab/engine-simulator/src/test-engine';
import { Gateway, post, type Reply } from './gateway';
import { ServiceBench } from './service-bench';

const REST_TIMEOUT_MS = 30_000;
export const PROMPT = [11, 12, 13];
/** Tokens that take some seconds on the first engine; the second engine is much faster. */
export const LONG = 150;

/** A body with a seed, so that every engine generates the same tokens. */
export const generate = (maxNewTokens: number, more: object = {}) => ({
  input_ids: PROMPT,
  sampling_params: { max_new_tokens: maxNewTokens, sampling_seed: 7 },
  return_logprob: true,
  ...more,
});

/** How the engines and the gateway of a test differ from the usual ones. */
export interface GatewaySetup {
  /** Default: `sglang`. */
  dialect?: EngineDialect;
  /** Tokens of a response without a smaller budget; default 8,000. */
  tokens?: number;
  /** Speed of the first engine; default 1, at which {@link LONG} tokens take some seconds. */
  speed?: number;
  secondSpeed?: number;
  /** Options of both engines. */
  engine?: Partial<SimulatorOptions>;
  /** Which of the engines are servers of the pool; default: the first. */
  registered?: 'none' | 'first' | 'both';
  gateway?: Partial<GatewayConfig>;
  balancer?: Partial<LoadBalancerConfig>;
  /** Whether the tests share one gateway and its engines, because each test leaves them as it found them. */
  isShared?: boolean;
}

/** A gateway in front of an engine, and a second engine, for each test. */
export class GatewayBench {
  bench!: ServiceBench;
  gateway!: Gateway;
  second!: Awaited<ReturnType<typeof startEngine>>;

  constructor(private readonly setup: GatewaySetup = {}) {}

  async begin(): Promise<void> {
    const { tokens = 8_000, speed = 1, registered = 'first', gateway } = this.setup;
    await this.bench.begin(() => tokens, speed, this.dialect, this.setup.engine);
    await this.startSecond();
    if (registered !== 'none') await this.registerFirst();
    if (registered === 'both') await this.registerSecond();
    this.gateway = await Gateway.start(this.bench.prefix, this.bench.pool, gateway);
  }

  async end(): Promise<void> {
    await this.gateway.close();
    await this.second.close();
    await this.bench.closeWorkers();
    await waitUntil(() => this.isAtRest(), { what: 'no lease and no finding', timeoutMs: REST_TIMEOUT_MS });
    await this.bench.engine.close();
  }

  /** @throws Error that names leases, waiters and findings of the audit */
  private async isAtRest(): Promise<boolean> {
    const { leases, waiters } = await this.leases();
    const findings = await this.bench.findings();
    if (leases + waiters + findings.length === 0) return true;
    throw new Error(JSON.stringify({ leases, waiters, findings }));
  }

  /** Starts the second engine, in the place of a running one, with other options. */
  async startSecond(more: Partial<SimulatorOptions> = {}): Promise<void> {
    const { tokens = 8_000, secondSpeed: speed = 20, engine } = this.setup;
    const lengths = { name: 'test', getLength: () => tokens };
    const [before, options] = [this.second, { speed, lengths, ...engine, ...more }];
    this.second = await startEngine(this.dialect, options);
    await before?.close();
  }

  readonly registerFirst = (more: object = {}): Promise<void> => this.bench.register({ ...this.server, ...more });

  readonly registerSecond = (more: object = {}): Promise<void> =>
    this.bench.register({
      serverId: 's2',
      instanceId: 'i2',
      endpoint: this.second.url,
      ...this.server,
      ...more,
    });

  /** The answer of an engine without an interruption. */
  readonly uncut = (maxNewTokens: number): Promise<Reply> =>
    post(`${this.second.url}/generate`, generate(maxNewTokens));

  readonly leases = async (): Promise<{ leases: number; waiters: number }> => {
    const { leases, waiters } = await this.bench.client.call(this.bench.pool, 'lb.status', {});
    return { leases, waiters };
  };

  /** Waits until a request on the first engine has some tokens. */
  readonly hasTokens = (): Promise<void> =>
    expect
      .poll(async () => Math.max(0, ...(await fetchState(this.bench.engine.url)).table.map((row) => row.made)))
      .toBeGreaterThan(5);

  /** Begins a generation that the first engine stops sending in the middle. */
  readonly stalled = async (more: object = {}): Promise<{ reply: Promise<Reply> }> => {
    await inject(this.bench.engine.url, { kind: 'stall', afterTokens: 6 });
    const reply = this.gateway.post('/generate', generate(LONG, more));
    await expect.poll(() => this.metric('tokens_generated_total')).toBe(6);
    return { reply };
  };

  readonly metric = (name: string): Promise<number> => this.gateway.metric(name);

  readonly isIdle = (url: string): Promise<void> => expect.poll(() => inEngine(url)).toBe(0);

  private get dialect(): EngineDialect {
    return this.setup.dialect ?? 'sglang';
  }

  /** Fields of a registration. Servers of SGLang are registered without a model. */
  private get server(): Partial<RequestOf<'server.register'>> {
    return { dialect: this.dialect, ...(this.dialect === 'vllm' && { model: 'simulated' }) };
  }
}

/** Begins and ends a bench with each test of the file, or with the file. @param tests that may begin */
export function useGateway(tests: number, setup: GatewaySetup = {}): GatewayBench {
  const system = new GatewayBench(setup);
  beforeAll(async () => {
    system.bench = await ServiceBench.open({}, setup.isShared ? 1 : tests, setup.balancer);
  });
  afterAll(() => system.bench?.close());
  const [before, after] = setup.isShared ? [beforeAll, afterAll] : [beforeEach, afterEach];
  before(() => system.begin());
  after(() => system.end());
  return system;
}

export function expectSame(reply: Reply, whole: Reply): void {
  expect(reply.status).toBe(200);
  const [a, b] = [reply.body, whole.body];
  expect(a.output_ids).toEqual(b.output_ids);
  expect(a.text).toBe(b.text);
  expect(a.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob)).toEqual(
    b.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob),
  );
  const { prompt_tokens: prompt, completion_tokens: completion, finish_reason: reason } = a.meta_info;
  expect([prompt, completion]).toEqual([b.meta_info.prompt_tokens, b.meta_info.completion_tokens]);
  expect(reason).toEqual(b.meta_info.finish_reason);
}
