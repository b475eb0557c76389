import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { RunningService } from '@broomwagon/platform';
import { testNatsUrl, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { bootstrapService } from '../../libs/platform/src/service/bootstrap';
import { GatewayConfig } from '../../apps/gateway/src/gateway.config';
import { GatewayModule } from '../../apps/gateway/src/gateway.module';
import { gatewayHttp } from '../../apps/gateway/src/http/http-server';

const START_TIMEOUT_MS = 30_000;

/** A reply of the gateway, or of an engine. */
export interface Reply {
  /** Headers after the body. */
  trailers?: Record<string, string | undefined>;
  status: number;
  headers: IncomingMessage['headers'];
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

/** One replica of the gateway in this process. */
export class Gateway {
  private constructor(readonly service: RunningService<GatewayConfig>) {}

  static async start(prefix: string, pool: string, settings: Partial<GatewayConfig> = {}): Promise<Gateway> {
    const config = Object.assign(new GatewayConfig(), {
      natsUrl: testNatsUrl(),
      redisUrl: testRedisUrl(),
      redisKeyPrefix: prefix,
      logLevel: 'silent',
      pool,
      apiKeys: 'off',
      httpPort: 0,
      // A busy machine may stand still for seconds.
      workerTtlMs: 6_000,
      acquireWaitMs: 500,
      engineFailurePauseMs: 50,
      drainMs: 20,
      ...settings,
    });
    // Two heartbeats find a lost lease, which would take four seconds with the pause of this time to live.
    Object.defineProperty(config, 'heartbeatIntervalMs', { value: 250 });
    const service = await bootstrapService(GatewayModule, {
      app: 'gateway',
      config,
      configType: GatewayConfig,
      transport: ({ workerId }) => ({ placeholders: { workerId } }),
      http: gatewayHttp,
    });
    const gateway = new Gateway(service);
    const isHealthy = async () => (await gateway.get('/health')).status === 200;
    await waitUntil(isHealthy, { what: 'a healthy gateway', timeoutMs: START_TIMEOUT_MS });
    return gateway;
  }

  get url(): string {
    return `http://127.0.0.1:${this.service.httpPort}`;
  }

  close(): Promise<void> {
    return this.service.close();
  }

  /** @param signal disconnects the client */
  post(
    path: string,
    body: object | string,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Reply> {
    return post(`${this.url}${path}`, body, headers, signal);
  }

  /** A metric of this replica, by its name without `broomwagon_`. */
  async metric(name: string): Promise<number> {
    const { body } = await this.get('/metrics');
    return Number(new RegExp(`^broomwagon_${name}(?:{.*})? (\\d+)$`, 'm').exec(body)?.[1]);
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    const response = await fetch(`${this.url}${path}`, { headers });
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: parsed(await response.text()),
    };
  }
}

/** Sends a request and reads its whole reply. @param signal disconnects */
export function post(
  url: string,
  body: object | string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = open(url, body, headers, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const { statusCode, headers, trailers } = response;
        resolve({ status: statusCode!, headers, trailers, body: parsed(text) });
      });
    });
    sent.on('error', reject);
    signal?.addEventListener('abort', () => sent.destroy(new Error('The client has disconnected')), { once: true });
  });
}

/** A request that may be cut off by `destroy`. */
export function open(
  url: string,
  body: object | string,
  headers: Record<string, string> = {},
  onResponse: (response: IncomingMessage) => void = (response) => response.resume(),
): ClientRequest {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = request(
    url,
    { method: 'POST', agent: false, headers: { 'content-type': 'application/json', ...headers } },
    onResponse,
  );
  sent.on('error', () => undefined).end(text);
  return sent;
}

/** A fetch that keeps the text that its callers read. */
export function recordingFetch(): { fetch: typeof fetch; raw: string[] } {
  const raw: string[] = [];
  const keep = new TransformStream<Uint8Array, Uint8Array>({
    transform: (bytes, out) => {
      raw.push(new TextDecoder().decode(bytes));
      out.enqueue(bytes);
    },
  });
  return {
    raw,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
      return isStream ? new Response(response.body!.pipeThrough(keep), response) : response;
    },
  };
}

/** The objects of a stream of events; `[DONE]` is null. */
export function parseEvents(text: string): unknown[] {
  // A refused request has an object as its body.
  if (typeof text !== 'string') throw new Error(`The reply is no stream: ${JSON.stringify(text)}`);
  const lines = text.split('\n\n').filter((line) => line.startsWith('data: '));
  return lines.map((line) => (line === 'data: [DONE]' ? null : JSON.parse(line.slice(6))));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
