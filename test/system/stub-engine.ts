import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { EngineDialect } from '@broomwagon/contracts';

type Body = Record<string, unknown>;
type Answer = (body: Body, response: ServerResponse, path: string) => void | Promise<void>;

/** Routes of generation by dialect. */
export const ENGINE_ROUTES: Record<'vllm' | 'sglang', readonly string[]> = {
  vllm: ['/inference/v1/generate', '/v1/completions', '/v1/chat/completions'],
  sglang: ['/generate', '/v1/completions', '/v1/chat/completions'],
};
const USAGE = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };

/** An engine that answers each request with one token, and keeps all requests. */
export class StubEngine {
  readonly calls: { path: string; body: Body; headers: IncomingHttpHeaders }[] = [];
  /** Ids of aborts. */
  readonly aborted: unknown[] = [];
  /** Answer of the engine; by default one token. */
  answer: Answer = answerOneToken;
  private readonly server: Server;

  private constructor(
    private readonly dialect: EngineDialect,
    private readonly models: readonly string[],
  ) {
    this.server = createServer((request, response) => {
      void (async () => {
        const sent = await text(request);
        const path = request.url!.split('?')[0]!;
        await this.take(request, path, sent === '' ? {} : (JSON.parse(sent) as Body), response);
      })();
    });
  }

  /** @param models models and adapters that the engine lists, its own model first; default: `m` */
  static async start(dialect: EngineDialect, ...models: string[]): Promise<StubEngine> {
    const stub = new StubEngine(dialect, models.length > 0 ? models : ['m']);
    await new Promise<void>((resolve) => stub.server.listen(0, '127.0.0.1', resolve));
    return stub;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async take(
    { method, headers }: IncomingMessage,
    path: string,
    body: Body,
    response: ServerResponse,
  ): Promise<void> {
    const routes: readonly string[] = ENGINE_ROUTES[this.dialect as 'vllm'];
    const isRoute = routes.includes(path);
    if (method === 'OPTIONS') return send(response, isRoute || path === '/abort_requests' ? 405 : 404, {});
    if (path === '/v1/models') {
      return send(response, 200, { data: this.models.map((id) => ({ id, max_model_len: 1_000 })) });
    }
    if (path === '/get_server_info') return send(response, 200, { model_path: this.models[0] });
    if (path === '/version') return send(response, 200, { version: '0.20.0' });
    if (path === '/health') return send(response, 200, {});
    if (path === '/tokenize') return send(response, 200, { tokens: [7, 8] });
    if (path === '/abort_requests' || path === '/abort_request') {
      this.aborted.push(body);
      return send(response, 200, {});
    }
    if (method !== 'POST' || !isRoute) return send(response, 404, { detail: 'Not Found' });
    if (isIntervalProbe(body)) return send(response, 400, { error: { message: 'temperature' } });
    this.calls.push({ path, body, headers });
    await this.answer(body, response, path);
  }
}

function answerOneToken(body: Body, response: ServerResponse, path: string): void {
  const answer = oneToken(path, body.stream === true);
  if (body.stream !== true) return send(response, 200, answer);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`data: ${JSON.stringify(answer)}\n\ndata: [DONE]\n\n`);
}

function oneToken(path: string, isStream: boolean): object {
  if (path === '/generate') {
    const meta = { finish_reason: { type: 'stop' }, completion_tokens: 1, prompt_tokens: 3 };
    return { text: 'x', output_ids: [5], meta_info: { ...meta, output_token_logprobs: [[-0.5, 5, null]] } };
  }
  const ended = { index: 0, token_ids: [5], finish_reason: 'stop' };
  const message = { role: 'assistant', content: 'x' };
  if (path === '/v1/chat/completions') {
    return { choices: [{ ...ended, [isStream ? 'delta' : 'message']: message }], usage: USAGE };
  }
  const logprobs = { token_logprobs: [-0.5], tokens: ['x'], top_logprobs: [{ x: -0.5 }], content: [{ logprob: -0.5 }] };
  return { choices: [{ ...ended, text: 'x', logprobs }], usage: USAGE };
}

export function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Whether a request only finds out whether the engine takes `stream_interval`. */
function isIntervalProbe({ temperature, sampling_params: sampling }: Body): boolean {
  return temperature === 'none' || (sampling as Body | undefined)?.temperature === -1;
}
