import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EngineAccess } from '@broomwagon/engines';
import { LoadBalancerConfig } from './load-balancer.config';
import { EngineHealth } from './servers/engine-health';

/**
 * An engine with a metrics page of vLLM. It answers every call with `status`, `delayMs` late, and closes its
 * connections when it is stopped. While `hangs` is set, it accepts connections and answers nothing.
 */
export class TestEngine {
  status = 200;
  delayMs = 0;
  hangs = false;
  /** Answers every path with a page, like a web server that got the address of an engine. */
  isWebServer = false;
  /** Models and adapters that the engine lists. */
  models = ['tiny'];
  /** Health routes answered so far, and resets of its prefix cache. */
  probes = 0;
  resets = 0;
  resetStatus = 200;
  metrics = { running: 0, waiting: 0, kvUse: 0, preemptions: 0 };
  /** Start time and weight version; absent: the engine does not report them. */
  startedAtSeconds?: number;
  weightVersion?: string;
  private constructor(private readonly server: Server) {}

  static async start(): Promise<TestEngine> {
    const server: Server = createServer((request, response) => {
      if (engine.hangs) return;
      setTimeout(() => {
        if (request.url === '/health') engine.probes++;
        const isReset = request.method === 'POST' && request.url === '/reset_prefix_cache';
        if (isReset && engine.resetStatus === 200) engine.resets++;
        response.writeHead(isReset ? engine.resetStatus : engine.status).end(engine.answer(request.url!));
      }, engine.delayMs);
    });
    const engine = new TestEngine(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private answer(path: string): string | undefined {
    if (this.isWebServer) return '<h1>Welcome</h1>';
    if (path === '/metrics') return this.page();
    if (path === '/weight_info') return JSON.stringify({ weight_version: this.weightVersion });
    if (path === '/version') return '{"version":"0.11.0"}';
    if (path !== '/v1/models') return undefined;
    return JSON.stringify({ data: this.models.map((id) => ({ id, max_model_len: 4_096 })) });
  }

  private page(): string {
    const { running, waiting, kvUse, preemptions } = this.metrics;
    return [
      `vllm:num_requests_running ${running}`,
      `vllm:num_requests_waiting ${waiting}`,
      `vllm:kv_cache_usage_perc ${kvUse}`,
      `vllm:num_preemptions_total ${preemptions}`,
      `vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1`,
      ...(this.startedAtSeconds === undefined ? [] : [`process_start_time_seconds ${this.startedAtSeconds}`]),
    ].join('\n');
  }
}

/** Base of scripted engine calls: a test overrides the calls that it needs. */
export class TestEngineHealth extends EngineHealth {
  constructor() {
    super(new LoadBalancerConfig(), new EngineAccess());
  }
}
