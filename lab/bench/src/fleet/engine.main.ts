import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerParent } from '../child';
import { type FleetDialect, PreparedAnswers } from './prepared-answers';
import { TokenStreams } from './token-streams';

/** Questions to the engines. */
export type EngineQuestion =
  /** Opens so many ports: each is an engine. `streamInterval`: flag of a server, for requests without the field. */
  | { kind: 'listen'; dialect: FleetDialect; engines: number; streamInterval?: number }
  /** Tokens per second of each later request; 0: all at once. */
  | { kind: 'pace'; tokensPerSecond: number }
  | { kind: 'counts' };

export interface EngineCounts {
  ports: number[];
  /** Number of responses that are streaming. */
  streams: number;
  /** Number of calls that are not streamed and not answered yet. */
  calls: number;
  /** Numbers since the start: tokens and events of streams, and calls that were answered. */
  tokens: number;
  events: number;
  answered: number;
}

/** Bodies of `/v1/completions` of vLLM and `/generate` of SGLang. */
interface Body {
  request_id?: string;
  rid?: string;
  stream?: boolean;
  max_tokens?: number;
  stream_interval?: number;
  logprobs?: number | null;
  return_logprob?: boolean;
  sampling_params?: { max_new_tokens?: number; stream_interval?: number };
}

const MODEL = { id: 'bench', object: 'model', owned_by: 'vllm', max_model_len: 1_000_000 };
const SGLANG_INFO = JSON.stringify({
  model_path: 'bench',
  served_model_name: 'bench',
  version: '0.5.23',
  context_length: 1_000_000,
  instance_id: 'bench',
  incremental_streaming_output: true,
});
/** Answers to the requests of load-balancers and adapters, by path. */
const ANSWERS: Record<FleetDialect, Record<string, string>> = {
  vllm: {
    '/health': '',
    '/version': JSON.stringify({ version: '0.33.0', instance_id: 'bench' }),
    '/v1/models': JSON.stringify({ object: 'list', data: [MODEL] }),
    '/weight_info': JSON.stringify({ weight_version: null }),
  },
  sglang: {
    '/health': '',
    '/get_server_info': SGLANG_INFO,
    '/server_info': SGLANG_INFO,
    '/get_model_info': JSON.stringify({ model_path: 'bench' }),
    '/v1/models': JSON.stringify({ object: 'list', data: [{ ...MODEL, owned_by: 'sglang' }] }),
  },
};
const JSON_TYPE = { 'content-type': 'application/json' };
const ABORT_PATHS = new Set(['/abort_requests', '/inference/v1/abort_requests', '/abort_request']);
const STARTED_AT_SECONDS = Math.floor(Date.now() / 1_000);
let dialect: FleetDialect;
let answers: PreparedAnswers;
let streams: TokenStreams;
let streamInterval = 1;
let tokensPerSecond = 30;
let calls = 0;
let answered = 0;
let last = 0;
const servers: Server[] = [];

function metrics(): string {
  const values = {
    num_requests_running: streams.open + calls,
    num_requests_waiting: 0,
    generation_tokens_total: streams.tokens,
  };
  const lines = Object.entries(values).map(([name, value]) => `vllm:${name}{model_name="bench"} ${value}`);
  return `${lines.join('\n')}\nprocess_start_time_seconds ${STARTED_AT_SECONDS}\n`;
}

function generate(body: Body, response: ServerResponse): void {
  const { sampling_params: sampling } = body;
  const maxTokens = body.max_tokens ?? sampling?.max_new_tokens ?? 16;
  const hasLogprobs = body.return_logprob === true || typeof body.logprobs === 'number';
  const id = body.request_id ?? body.rid ?? `call-${last++}`;
  if (body.stream) {
    // As in vLLM, the larger interval of request and server holds.
    const interval = Math.max(body.stream_interval ?? sampling?.stream_interval ?? 1, streamInterval);
    streams.start({ id, maxTokens, interval, hasLogprobs, tokensPerSecond }, response);
    return;
  }
  calls += 1;
  const end = (): void => {
    calls -= 1;
    answered += 1;
    const answer = answers.whole(maxTokens, hasLogprobs);
    response.writeHead(200, { ...JSON_TYPE, 'content-length': answer.length }).end(answer);
  };
  if (tokensPerSecond === 0) end();
  else setTimeout(end, (1_000 * (maxTokens - 1)) / tokensPerSecond);
}

/** Ids in an abort: vLLM puts the route before the id of a completion, and the index of the prompt after it. */
function abort({ request_ids: ids = [], rid }: { request_ids?: string[]; rid?: string }): void {
  for (const id of rid === undefined ? ids : [rid]) streams.abort(/^cmpl-(.*)-0$/.exec(id)?.[1] ?? id);
}

async function readJson<T>(request: IncomingMessage): Promise<T> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as T;
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url!.split('?', 1)[0]!;
  if (path === '/v1/completions' || path === '/generate') {
    void readJson<Body>(request).then((body) => generate(body, response));
    return;
  }
  if (path === '/metrics') return void response.writeHead(200).end(metrics());
  const isAbort = ABORT_PATHS.has(path);
  if (isAbort && request.method === 'POST') {
    void readJson<Parameters<typeof abort>[0]>(request).then((body) => {
      abort(body);
      response.writeHead(200, JSON_TYPE).end('{}');
    });
    return;
  }
  const answer = isAbort ? '' : ANSWERS[dialect][path];
  response.writeHead(answer === undefined ? 404 : 200, JSON_TYPE).end(answer);
}

async function listen(question: Extract<EngineQuestion, { kind: 'listen' }>): Promise<void> {
  ({ dialect, streamInterval = 1 } = question);
  answers = new PreparedAnswers(dialect);
  streams = new TokenStreams(answers);
  for (let index = 0; index < question.engines; index++) {
    const server = createServer({ keepAliveTimeout: 600_000, requestTimeout: 0 }, handle);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4_096, resolve));
    servers.push(server);
  }
}

/** Engines that cost as little CPU as possible, all in one process. */
answerParent<EngineQuestion, EngineCounts>(async (question) => {
  if (question.kind === 'listen') await listen(question);
  if (question.kind === 'pace') ({ tokensPerSecond } = question);
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  const { open, tokens, events } = streams;
  return { ports, streams: open, calls, tokens, events, answered };
});
